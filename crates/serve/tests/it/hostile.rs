//! Clients, feeds and people who mean harm, over the service's own doors.

mod accounts;
