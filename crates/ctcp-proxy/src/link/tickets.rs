//! The ticket for the next visit to a server, in memory and, if asked for, in a file.
//!
//! ```text
//!  ctcp-ticket 1 SERVER_KEY ADDRESS EXPIRES TICKET          one line; seconds since 1970; hexadecimal
//! ```
//!
//! The file is as secret as a private key. It is removed when the ticket is taken: a server takes each ticket once. A file that others can
//! read or write is not used, because anyone who has the ticket can read the early data. Only a ticket is ever removed or replaced, so a name
//! given by mistake, such as that of a key, loses nothing.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ctcp::{PublicKey, Ticket};
use tracing::{debug, warn};

/// The first words of the file.
const HEAD: &str = "ctcp-ticket 1";

/// The first word of the file, of any version.
const NAME: &str = "ctcp-ticket ";

/// A file has one line of a few hundred bytes.
const FILE_SIZE_MAX: u64 = 4096;

/// The newest ticket of a server.
#[derive(Debug, Default)]
pub struct Tickets {
    file: Option<PathBuf>,
    held: Mutex<Option<Held>>,
}

#[derive(Debug)]
struct Held {
    server: PublicKey,
    address: SocketAddr,
    expires: SystemTime,
    ticket: Ticket,
}

impl Tickets {
    /// Keeps the ticket in a file as well, so that the next run of the program can use it.
    #[must_use]
    pub fn in_file(file: PathBuf) -> Self {
        Self { file: Some(file), held: Mutex::default() }
    }

    /// The address of a server for which there is a ticket that has not expired. Another program may take it from the file meanwhile.
    #[must_use]
    pub fn address(&self, server: &PublicKey) -> Option<SocketAddr> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let in_file = if held.is_none() { self.read() } else { None };
        held.as_ref().or(in_file.as_ref()).filter(|held| held.is_of(server)).map(|held| held.address)
    }

    /// Removes and returns the ticket of a server, with the server's address, unless it has expired.
    pub fn take(&self, server: &PublicKey) -> Option<(SocketAddr, Ticket)> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let held = held.take().or_else(|| self.read());
        if let Some(file) = &self.file
            && is_replaceable(file)
        {
            let _ = fs::remove_file(file);
        }
        let held = held.filter(|held| held.is_of(server))?;
        Some((held.address, held.ticket))
    }

    /// Replaces the ticket. A file that cannot be written is logged: it only costs the next run a round trip.
    pub fn put(&self, server: &PublicKey, address: SocketAddr, ticket: &Ticket) {
        let expires = now() + ticket.lifetime();
        let new = Held { server: *server, address, expires, ticket: ticket.clone() };
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = &self.file
            && let Err(error) = write(file, &new.line())
        {
            warn!("cannot keep the server's ticket in {}: {error}", file.display());
        }
        *held = Some(new);
    }

    fn read(&self) -> Option<Held> {
        let file = self.file.as_ref()?;
        let metadata = fs::metadata(file).ok()?;
        let is_usable = metadata.is_file() && metadata.len() <= FILE_SIZE_MAX && is_private(&metadata);
        let line = is_usable.then(|| fs::read_to_string(file).ok()).flatten();
        let held = line.as_deref().and_then(Held::parse);
        if held.is_none() {
            debug!("{} has no ticket", file.display());
        }
        held
    }
}

impl Held {
    fn is_of(&self, server: &PublicKey) -> bool {
        self.server == *server && now() < self.expires
    }

    fn line(&self) -> String {
        let expires = self.expires.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let ticket: String = self.ticket.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{HEAD} {} {} {expires} {ticket}\n", self.server, self.address)
    }

    fn parse(line: &str) -> Option<Self> {
        let mut words = line.strip_prefix(HEAD)?.split_whitespace();
        let (server, address) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let expires = UNIX_EPOCH.checked_add(Duration::from_secs(words.next()?.parse().ok()?))?;
        let digits = words.next()?.as_bytes();
        let bytes: Option<Vec<u8>> =
            digits.chunks(2).map(|pair| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok()).collect();
        Some(Self { server, address, expires, ticket: Ticket::from_bytes(&bytes?)? })
    }
}

/// The calendar's time, because a ticket in a file outlives the process.
#[expect(clippy::disallowed_methods, reason = "the clock of the transport begins with the process")]
fn now() -> SystemTime {
    SystemTime::now()
}

/// Whether only the owner of the file can read and write it.
#[cfg(unix)]
fn is_private(metadata: &Metadata) -> bool {
    std::os::unix::fs::MetadataExt::mode(metadata) & 0o077 == 0
}

/// This system has no file modes.
#[cfg(not(unix))]
fn is_private(_: &Metadata) -> bool {
    true
}

/// Whether there is no file of this name, or one of [`Tickets`]. A crash may have left it empty.
fn is_replaceable(file: &Path) -> bool {
    match fs::metadata(file) {
        Ok(metadata) => metadata.is_file() && (metadata.len() == 0 || is_named(file).unwrap_or(false)),
        Err(error) => error.kind() == ErrorKind::NotFound,
    }
}

fn is_named(file: &Path) -> io::Result<bool> {
    let mut name = [0; NAME.len()];
    File::open(file)?.read_exact(&mut name)?;
    Ok(name == NAME.as_bytes())
}

/// Writes a file that only its owner can read. A reader sees the old or the new contents.
fn write(file: &Path, contents: &str) -> io::Result<()> {
    if !is_replaceable(file) {
        return Err(io::Error::new(ErrorKind::AlreadyExists, "the file is no ticket"));
    }
    let mut name = file.as_os_str().to_owned();
    name.push(format!(".{}", std::process::id()));
    let new = PathBuf::from(name);
    // What is there may be a link, or readable by others.
    let _ = fs::remove_file(&new);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(&new).and_then(|mut handle| handle.write_all(contents.as_bytes()));
    written.and_then(|()| fs::rename(&new, file)).inspect_err(|_| {
        let _ = fs::remove_file(&new);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticket(byte: u8) -> Ticket {
        // Lifetime 60 s, 4 streams, secret, token.
        let bytes = [&[0, 0, 0, 60, 0, 0, 0, 0, 0, 0, 0, 4][..], &[byte; 32], &[byte; 108]].concat();
        Ticket::from_bytes(&bytes).expect("a ticket")
    }

    #[test]
    fn a_ticket_is_taken_once_by_its_server_only() {
        let (server, other) = (PublicKey([1; 32]), PublicKey([2; 32]));
        let address = "192.0.2.1:4433".parse().unwrap();
        let tickets = Tickets::default();
        tickets.put(&server, address, &ticket(1));
        tickets.put(&server, address, &ticket(2));
        assert_eq!((tickets.address(&server), tickets.address(&other)), (Some(address), None));
        assert_eq!(tickets.take(&server), Some((address, ticket(2))));
        assert_eq!((tickets.address(&server), tickets.take(&server)), (None, None));
        tickets.put(&server, address, &ticket(3));
        assert_eq!(tickets.take(&other), None);
    }

    #[test]
    fn a_file_keeps_it_for_the_next_run_and_nonsense_in_it_is_no_ticket() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("ticket");
        let (server, address) = (PublicKey([1; 32]), "[2001:db8::1]:4433".parse().unwrap());
        Tickets::in_file(file.clone()).put(&server, address, &ticket(1));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        }
        let line = fs::read_to_string(&file).unwrap();
        let tickets = Tickets::in_file(file.clone());
        assert_eq!(tickets.address(&server), Some(address), "which leaves it there");
        assert_eq!(tickets.take(&server), Some((address, ticket(1))));
        assert!(!file.exists() && tickets.take(&server).is_none());
        let expired = line.replace(line.split(' ').nth(4).unwrap(), "1000000000");
        for nonsense in
            ["", "ctcp-ticket 1", &line[..line.len() - 230], &line.replace(" 1 ", " 2 "), &expired]
        {
            fs::write(&file, nonsense).unwrap();
            assert_eq!(tickets.take(&server), None, "{nonsense}");
        }
        let missing = Tickets::in_file(directory.path().join("missing").join("ticket"));
        missing.put(&server, address, &ticket(1));
        assert!(missing.take(&server).is_some(), "memory has it");
    }

    #[test]
    fn a_file_that_is_no_ticket_is_neither_removed_nor_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("client.key");
        let (server, address) = (PublicKey([1; 32]), "192.0.2.1:4433".parse().unwrap());
        fs::write(&file, "a private key\n").unwrap();
        let tickets = Tickets::in_file(file.clone());
        assert_eq!(tickets.take(&server), None);
        tickets.put(&server, address, &ticket(1));
        assert_eq!(tickets.take(&server), Some((address, ticket(1))), "memory has it");
        assert_eq!(fs::read_to_string(&file).unwrap(), "a private key\n");
        fs::write(&file, "").unwrap();
        tickets.put(&server, address, &ticket(2));
        assert_eq!(Tickets::in_file(file).take(&server), Some((address, ticket(2))), "after a crash");
    }

    #[cfg(unix)]
    #[test]
    fn what_others_can_read_or_write_is_not_used() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("ticket");
        let (server, address) = (PublicKey([1; 32]), "192.0.2.1:4433".parse().unwrap());
        for (mode, is_used) in [(0o600, true), (0o400, true), (0o644, false), (0o620, false), (0o666, false)]
        {
            Tickets::in_file(file.clone()).put(&server, address, &ticket(1));
            fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
            assert_eq!(Tickets::in_file(file.clone()).take(&server).is_some(), is_used, "{mode:o}");
        }
        // Somebody guesses the name under which the file is written first.
        let (other, link) = (directory.path().join("other"), format!("ticket.{}", std::process::id()));
        fs::write(&other, "precious").unwrap();
        symlink(&other, directory.path().join(link)).unwrap();
        Tickets::in_file(file.clone()).put(&server, address, &ticket(1));
        assert_eq!(fs::read_to_string(&other).unwrap(), "precious");
        assert_eq!(Tickets::in_file(file).take(&server), Some((address, ticket(1))));
    }
}
