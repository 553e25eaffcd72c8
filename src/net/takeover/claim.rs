//! Claims of shards in a directory of generations.

use crate::session::SHARDS_MAX;
use rustix::fs::{FlockOperation, flock};
use rustix::process::geteuid;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{
    DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// A claim of a shard, in a directory of generations.
#[derive(Debug)]
pub(in super::super) struct Claim {
    pub(in super::super) shard: u8,
    pub(super) listener: UnixListener,
    pub(super) path: PathBuf,
    /// The streams to the generations that are alive, by shard.
    pub(super) older: Vec<Option<UnixStream>>,
    /// Nobody else claims or gives up a shard until this is closed.
    pub(super) lock: File,
}

impl Claim {
    /// Claims the lowest shard that no running process has.
    pub(in super::super) fn new(dir: &Path) -> io::Result<Self> {
        let dir: PathBuf = dir.components().collect(); // without a slash at the end, which would follow a link
        make_private(&dir)?;
        let lock = lock(&dir)?;
        let mut older = Vec::with_capacity(SHARDS_MAX);
        let mut free = None;
        for shard in 0..SHARDS_MAX {
            let path = dir.join(shard.to_string());
            let stream = if is_socket(&path)? { connect(&path)? } else { None };
            if stream.is_none() && free.is_none() {
                free = u8::try_from(shard).ok().map(|shard| (shard, path));
            }
            older.push(stream);
        }
        let why = "64 processes have this socket, and all of them still run";
        let (shard, path) = free.ok_or_else(|| io::Error::new(ErrorKind::AddrInUse, why))?;
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {} // of a process that has crashed
        }
        let listener = UnixListener::bind(&path)?;
        fs::set_permissions(&path, Permissions::from_mode(0o600))?;
        Ok(Self { shard, listener, path, older, lock })
    }
}

/// Makes the directory, if there is none. Whoever could write to it could claim to be a generation, and whoever could put a link in its
/// place could have files of another directory removed.
fn make_private(dir: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(dir) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let found = fs::symlink_metadata(dir)?;
    if !found.is_dir() {
        return Err(refused(dir, "is not a directory"));
    }
    if !is_own(&found) {
        return Err(refused(dir, "belongs to another user than the process"));
    }
    if found.mode() & 0o077 != 0 {
        return Err(refused(dir, "must be for its owner only (mode 0700)"));
    }
    Ok(())
}

/// Waits until no other process claims or gives up a shard here. The system gives the lock back when its owner ends.
fn lock(dir: &Path) -> io::Result<File> {
    let path = dir.join(LOCK);
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path)?;
    let deadline = Instant::now() + PATIENCE;
    while let Err(error) = flock(&file, FlockOperation::NonBlockingLockExclusive) {
        if ![ErrorKind::WouldBlock, ErrorKind::Interrupted].contains(&error.kind()) {
            return Err(error.into());
        }
        if Instant::now() >= deadline {
            let why = format!("another process has locked {} for {PATIENCE:?}", path.display());
            return Err(io::Error::new(ErrorKind::TimedOut, why));
        }
        thread::sleep(AGAIN);
    }
    Ok(file)
}

/// Ends the wait of the thread that listens at `path`, and removes that. While a shard is being claimed, it stays there: the path may then
/// be a new process's soon.
pub(super) fn give_up(path: &Path) {
    let lock = || {
        let file = OpenOptions::new().write(true).open(path.parent()?.join(LOCK)).ok()?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).ok().map(|()| file)
    };
    let locked = lock();
    let _ = UnixStream::connect(path);
    if locked.is_some() {
        let _ = fs::remove_file(path);
    }
}

/// Whether there is a socket. What else there may be is not ours to remove.
fn is_socket(path: &Path) -> io::Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => Err(refused(path, "is not a socket")),
        Ok(found) if !is_own(&found) => Err(refused(path, "belongs to another user than the process")),
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// The stream to who listens there. `None`: the process has ended.
fn connect(path: &Path) -> io::Result<Option<UnixStream>> {
    match UnixStream::connect(path) {
        Ok(stream) => Ok(Some(stream)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_own(found: &Metadata) -> bool {
    found.uid() == geteuid().as_raw()
}

fn refused(path: &Path, why: &str) -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, format!("{} {why}", path.display()))
}

const LOCK: &str = "lock";
/// How long a process waits for others that start or end: longer than an old process may take to answer one of them.
const PATIENCE: Duration = Duration::from_secs(5);
const AGAIN: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::sync::Barrier;

    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Self {
            Self(std::env::temp_dir().join(format!("whitewater-claim-{name}-{}", std::process::id())))
        }

        fn refusal(&self) -> (ErrorKind, String) {
            let error = Claim::new(&self.0).unwrap_err();
            (error.kind(), error.to_string())
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn processes_that_start_at_once_claim_different_shards() {
        const COUNT: usize = 8;
        let (place, all) = (Place::new("race"), Barrier::new(COUNT));
        for round in 0..20 {
            let claim = || {
                all.wait();
                let Claim { shard, listener, lock, .. } = Claim::new(&place.0).unwrap();
                drop(lock); // as one that has taken over
                (shard, listener)
            };
            let claimed: Vec<_> = thread::scope(|scope| {
                let threads: Vec<_> = (0..COUNT).map(|_| scope.spawn(claim)).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            let mut shards: Vec<_> = claimed.iter().map(|(shard, _)| *shard).collect();
            shards.sort_unstable();
            assert_eq!(shards, (0..8).collect::<Vec<_>>(), "round {round}");
        }
    }

    #[test]
    fn what_ends_while_another_starts_does_not_remove_its_path() {
        let place = Place::new("end");
        let first = Claim::new(&place.0).unwrap();
        give_up(&first.path); // the lock is still held
        assert!(first.path.exists());
        drop(first.lock);
        give_up(&first.path);
        assert!(!first.path.exists());
    }

    #[test]
    fn a_place_that_others_could_have_prepared_is_refused_and_left_as_it_is() {
        let place = Place::new("dir");
        fs::create_dir(&place.0).unwrap();
        for mode in [0o701, 0o710, 0o722, 0o777] {
            fs::set_permissions(&place.0, Permissions::from_mode(mode)).unwrap();
            let (kind, why) = place.refusal();
            assert!(kind == ErrorKind::PermissionDenied && why.ends_with("(mode 0700)"), "{mode:o}: {why}");
        }
        fs::set_permissions(&place.0, Permissions::from_mode(0o700)).unwrap();
        let file = place.0.join("0");
        fs::write(&file, "precious").unwrap();
        let (kind, why) = place.refusal();
        assert!(kind == ErrorKind::PermissionDenied && why.ends_with("0 is not a socket"), "{why}");
        assert_eq!(fs::read(&file).unwrap(), b"precious");
        let link = Place::new("link");
        symlink(&place.0, &link.0).unwrap();
        for path in [link.0.clone(), link.0.join("")] {
            let error = Claim::new(&path).unwrap_err();
            assert!(error.to_string().ends_with("is not a directory"), "{error}");
        }
        fs::remove_file(&link.0).unwrap();
        if geteuid().is_root() {
            fs::remove_file(&file).unwrap();
            std::os::unix::fs::chown(&place.0, Some(12345), None).unwrap();
            assert!(place.refusal().1.ends_with("belongs to another user than the process"));
        }
    }
}
