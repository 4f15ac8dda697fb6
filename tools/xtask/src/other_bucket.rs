//! The tests of the archive in a bucket, run on a second server, moto, in addition to the one that they start
//! themselves.

use std::process::{Child, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result};

use shell::repository::Repository;

use crate::{packages, schemathesis};

const PACKAGES: [&str; 2] = ["moto==5.2.5", "moto[server]"];
/// Environment variable read by the tests, and the bucket they use.
const ENDPOINT: &str = "LINESMAN_TEST_S3_ENDPOINT";
const BUCKET: &str = "odds";
const START_MAX: Duration = Duration::from_secs(60);
/// Creates the bucket as soon as the server answers.
const MAKE_BUCKET: &str = "import boto3, sys; boto3.client('s3', endpoint_url=sys.argv[1], region_name='us-east-1', \
                           aws_access_key_id='linesman-test', aws_secret_access_key='x')\
                           .create_bucket(Bucket=sys.argv[2])";

pub(crate) fn other_bucket(repository: &Repository) -> Result<()> {
    let programs = packages::python(repository, "other-bucket", &PACKAGES)?;
    let mut command = shell::command(programs.join("moto_server"), &repository.root);
    // It takes a free port, and prints its address on stderr.
    command.args(["-H", "127.0.0.1", "-p", "0"]).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut server = Moto(command.spawn().context("cannot start moto")?);
    let output = server.0.stderr.take().context("moto has no output")?;
    let endpoint = schemathesis::first_address(output).context("moto")?;
    shell::wait_until("moto answers", START_MAX, || {
        let mut make = shell::command(programs.join("python"), &repository.root);
        shell::succeeds(make.args(["-c", MAKE_BUCKET, &endpoint, BUCKET]))
    })?;
    let mut tests = shell::cargo(repository);
    tests.args(["test", "-q", "--workspace", "--test", "it", "stores::"]);
    shell::run(tests.env(ENDPOINT, endpoint)).context("the archive in a bucket of moto")
}

/// The moto server, stopped when it is dropped.
struct Moto(Child);

impl Drop for Moto {
    fn drop(&mut self) {
        // It may have ended already, so an error is ignored.
        self.0.kill().unwrap_or_default();
        self.0.wait().map(drop).unwrap_or_default();
    }
}
