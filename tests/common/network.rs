//! Tests in a network of their own: they run themselves again in a Linux namespace, where `ip`, `tc` and `nft` change nothing outside.

use std::env;
use std::process::Command;

/// Runs the test in its own network, which only has a loopback. If the system allows no namespaces, it prints a note instead; also if `ip` is
/// missing, unless `WHITEWATER_NO_SKIP` is set. Processes that the test leaves behind end with it.
pub(crate) fn in_own_network(test: &str, body: impl FnOnce()) {
    const INSIDE: &str = "WHITEWATER_OWN_NETWORK";
    if env::var_os(INSIDE).is_some() {
        ip("link set lo up");
        return body();
    }
    let kind = ["-n", "-rn"].into_iter().find(|kind| is_allowed(kind));
    let has_ip = Command::new("ip").arg("-V").output().is_ok();
    let (Some(kind), true) = (kind, has_ip) else {
        println!("skipped: namespaces are allowed: {}, ip is there: {has_ip}", kind.is_some());
        return assert!(has_ip || env::var_os("WHITEWATER_NO_SKIP").is_none(), "ip of iproute2 is missing");
    };
    let mut inside = Command::new("unshare");
    inside.arg(kind).args(WITH_PROCESSES).arg(env::current_exe().unwrap());
    let output =
        inside.args(["--exact", test, "--nocapture", "--include-ignored"]).env(INSIDE, "1").output().unwrap();
    let [stdout, stderr] =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success() && stdout.contains("1 passed"), "{stdout}{stderr}");
    print!("{stdout}");
}

/// Processes are in a namespace as well, which ends with the test.
const WITH_PROCESSES: [&str; 4] = ["--pid", "--fork", "--kill-child", "--mount-proc"];

/// A namespace of root's has root's rights outside of it, such as memory without a limit; other users need one in which they are root.
fn is_allowed(kind: &str) -> bool {
    let output = Command::new("unshare").arg(kind).args(WITH_PROCESSES).arg("true").output();
    output.is_ok_and(|output| output.status.success())
}

pub(crate) fn ip(args: &str) {
    run("ip", args);
}

pub(crate) fn run(program: &str, args: &str) {
    let output = Command::new(program).args(args.split(' ')).output().unwrap();
    assert!(output.status.success(), "{program} {args}: {}", String::from_utf8_lossy(&output.stderr));
}
