//! Common parts of all response types: fields and values that this version does not know are kept.
//!
//! Not `derive` with `flatten`, which parses every number as a double first: prices would not be exact.

#[cfg(test)]
use std::cell::Cell;

#[cfg(test)]
thread_local! {
    /// Refuses unknown fields, for tests.
    pub(crate) static STRICT: Cell<bool> = const { Cell::new(false) };
}

/// A struct for an object of the API. Fields under `absent` may be missing in it; `then` names a method that
/// completes a parsed value.
macro_rules! record {
    (
        $(#[$about:meta])*
        $name:ident { $($(#[$doc:meta])* $field:ident: $type:ty,)* }
        $(absent { $($(#[$absent_doc:meta])* $absent:ident: $absent_type:ty,)* })?
        $(then $complete:ident)?
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        pub struct $name {
            $($(#[$doc])* pub $field: $type,)*
            $($($(#[$absent_doc])* pub $absent: Option<$absent_type>,)*)?
            /// Fields that this version of the client does not know.
            pub other: serde_json::Map<String, serde_json::Value>,
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
                struct Reader;

                impl<'de> serde::de::Visitor<'de> for Reader {
                    type Value = $name;

                    fn expecting(&self, text: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        text.write_str(concat!("an object (", stringify!($name), ")"))
                    }

                    fn visit_map<A>(self, mut map: A) -> std::result::Result<$name, A::Error>
                    where
                        A: serde::de::MapAccess<'de>,
                    {
                        $(let mut $field: Option<$type> = None;)*
                        $($(let mut $absent: Option<$absent_type> = None;)*)?
                        let mut other = serde_json::Map::new();
                        while let Some(key) = map.next_key::<String>()? {
                            match key.as_str() {
                                $(stringify!($field) => $field = Some(map.next_value()?),)*
                                $($(stringify!($absent) => $absent = map.next_value()?,)*)?
                                _ => {
                                    #[cfg(test)]
                                    assert!(
                                        !$crate::macros::STRICT.get(),
                                        "{} has no field {key}",
                                        stringify!($name)
                                    );
                                    other.insert(key, map.next_value()?);
                                }
                            }
                        }
                        let missing = <A::Error as serde::de::Error>::missing_field;
                        let read = $name {
                            $($field: $field.ok_or_else(|| missing(stringify!($field)))?,)*
                            $($($absent,)*)?
                            other,
                        };
                        $(let read = read.$complete().map_err(serde::de::Error::custom)?;)?
                        Ok(read)
                    }
                }

                deserializer.deserialize_map(Reader)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
                use serde::ser::SerializeMap as _;

                let mut map = serializer.serialize_map(None)?;
                $(map.serialize_entry(stringify!($field), &self.$field)?;)*
                $($(
                    if let Some(value) = &self.$absent {
                        map.serialize_entry(stringify!($absent), value)?;
                    }
                )*)?
                for (name, value) in &self.other {
                    map.serialize_entry(name, value)?;
                }
                map.end()
            }
        }

        #[cfg(test)]
        impl $name {
            /// The names of its fields, and of the optional ones.
            pub(crate) const FIELDS: (&'static [&'static str], &'static [&'static str]) =
                (&[$(stringify!($field)),*], &[$($(stringify!($absent)),*)?]);
        }
    };
}

/// The field that contains the type of a message.
pub(crate) const fn tag(_kind: &str) -> &'static str {
    "type"
}

/// A struct for messages that are sent: `new` takes the required fields, and each optional field has a method.
macro_rules! message {
    (
        $(#[$about:meta])*
        $name:ident $(= $kind:literal)? { $($(#[$doc:meta])* $field:ident: $type:ty,)* }
        optional { $($(#[$option_doc:meta])* $option:ident: $option_type:ty,)* }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        #[must_use]
        pub struct $name {
            $($(#[$doc])* pub $field: $type,)*
            $($(#[$option_doc])* pub $option: Option<$option_type>,)*
        }

        impl $name {
            /// Creates it with the required fields.
            pub fn new($($field: impl Into<$type>),*) -> Self {
                Self { $($field: $field.into(),)* $($option: None,)* }
            }

            $(
                $(#[$option_doc])*
                pub fn $option(mut self, $option: impl Into<$option_type>) -> Self {
                    self.$option = Some($option.into());
                    self
                }
            )*

            #[cfg(test)]
            /// The names of its fields, and of the optional ones.
            pub(crate) const FIELDS: (&'static [&'static str], &'static [&'static str]) =
                (&[$($crate::macros::tag($kind),)? $(stringify!($field)),*], &[$(stringify!($option)),*]);
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
                use serde::ser::SerializeMap as _;

                let mut map = serializer.serialize_map(None)?;
                $(map.serialize_entry($crate::macros::tag($kind), $kind)?;)?
                // A field may have the name of a keyword.
                $(map.serialize_entry(stringify!($field).trim_start_matches("r#"), &self.$field)?;)*
                $(
                    if let Some(value) = &self.$option {
                        map.serialize_entry(stringify!($option), value)?;
                    }
                )*
                map.end()
            }
        }
    };
}

/// A set of values that may grow: a value that this version does not know is kept in `Other`.
macro_rules! open_enum {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$doc])* $variant,)*
            /// A value that this version of the client does not know.
            Other(String),
        }

        impl $name {
            /// The value as the API writes it.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $text,)*
                    Self::Other(text) => text,
                }
            }

            #[cfg(test)]
            pub(crate) const VALUES: &'static [&'static str] = &[$($text),*];
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                match text {
                    $($text => Self::$variant,)*
                    _ => Self::Other(text.to_owned()),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, text: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                text.pad(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
                Ok(Self::from(String::deserialize(deserializer)?.as_str()))
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
    };
}

/// A method for each parameter of an operation: `name` for one value, `[name]` for a list.
macro_rules! parameters {
    (@ [$name:ident]) => {
        #[doc = concat!("The parameter `", stringify!($name), "`, a list.")]
        pub fn $name(self, items: impl IntoIterator<Item = impl std::fmt::Display>) -> Self {
            self.param(stringify!($name), $crate::query::joined(items))
        }
    };
    (@ $name:ident) => {
        #[doc = concat!("The parameter `", stringify!($name), "`.")]
        pub fn $name(self, value: impl std::fmt::Display) -> Self {
            self.param(stringify!($name), value)
        }
    };
    (= [$name:ident]) => { stringify!($name) };
    (= $name:ident) => { stringify!($name) };
    ($($parameter:tt)*) => {
        $(parameters!(@ $parameter);)*

        #[cfg(test)]
        pub(crate) const PARAMETERS: &'static [&'static str] = &[$(parameters!(= $parameter)),*];
    };
}

pub(crate) use {message, open_enum, parameters, record};
