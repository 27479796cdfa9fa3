//! The options of the command line. Their names and meanings are a contract: scripts rely on them.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};
use ctcp::{Catalogue, Grant, PathMode, Profile, PublicKey, Redundancy, UnknownName};
use ctcp_base::{Probability, Rate, parse_bytes, parse_duration};
use ctcp_proxy::address::TargetAddress;
use ctcp_proxy::forward::Forward;
use ctcp_proxy::link::{PathChoice, ServerAddress, Via};
use ctcp_proxy::request::Stop;
use ctcp_proxy::target_policy::Rule;

use crate::error::CliError;

/// Parses an address to listen on. The error shows the expected form.
fn listen_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| match text.parse::<u16>() {
        Ok(port) => {
            format!("expected ADDR:PORT, such as 127.0.0.1:{port}, or 0.0.0.0:{port} for all addresses")
        }
        Err(_) => "expected ADDR:PORT with an IP address, such as 127.0.0.1:1080 or [::1]:1080".to_owned(),
    })
}

/// Parses the address of a server, which must be reachable from other machines.
fn server_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| match text.parse::<u16>() {
        Ok(port) => format!("expected ADDR:PORT, such as 0.0.0.0:{port} for all addresses"),
        Err(_) => "expected ADDR:PORT with an IP address, such as 0.0.0.0:4433 or [::]:4433".to_owned(),
    })
}

fn further_address(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr = text.parse().map_err(|_| "expected ADDR:PORT with an IP address".to_owned())?;
    let ip = address.ip();
    if address.port() == 0 || ip.is_unspecified() || ip.is_multicast() {
        return Err(
            "clients cannot send to this address: name one of this server's own, with the port".to_owned()
        );
    }
    Ok(address)
}

fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("expected a whole number from 0 to {}", u64::MAX))
}

/// Network Coded TCP: fast connections over links that lose packets.
#[derive(Debug, Parser)]
#[command(name = "ctcp", version = env!("CTCP_VERSION"), max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show on this machine how coding helps on a lossy link
    Demo(DemoArgs),
    /// Create a private key and print its public key
    Keygen(KeygenArgs),
    /// Print the public key of a private key file
    Pubkey(PubkeyArgs),
    /// Run the reverse proxy, through which clients reach the network
    Server(ServerArgs),
    /// Carry the datagrams of clients to servers, and repair losses on the way, without reading them
    Relay(RelayArgs),
    /// Run the forward proxy: SOCKS5, HTTP and fixed forwards for programs on this machine
    Client(ClientArgs),
    /// Join standard input and output to a target, for ssh's ProxyCommand
    Connect(ConnectArgs),
    /// Fetch a file from a server's --files directory
    Get(GetArgs),
    /// Store a file in a server's --files directory
    Put(PutArgs),
}

/// Example: ctcp demo --loss 0.2
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  ctcp demo --loss 0.2 --rate 25mbit --rtt 20ms --size 10mb")]
pub(crate) struct DemoArgs {
    /// Probability of random loss, each way, as 0.05 or 5%
    #[arg(long, default_value = "0.05")]
    pub(crate) loss: Probability,
    /// Rate of the link
    #[arg(long, default_value = "25mbit")]
    pub(crate) rate: Rate,
    /// Round-trip time of the link
    #[arg(long, default_value = "20ms", value_parser = parse_duration)]
    pub(crate) rtt: Duration,
    /// Bytes to download
    #[arg(long, default_value = "10mb", value_parser = parse_bytes)]
    pub(crate) size: u64,
    /// Profile to compare with the uncoded one
    #[arg(long, default_value = "default")]
    pub(crate) profile: String,
    /// Seed of the random losses
    #[arg(long, default_value_t = 1, value_parser = seed)]
    pub(crate) seed: u64,
    /// Print one JSON object instead of text. If the uncoded download was stopped early, `baseline.extrapolated` is
    /// true and its seconds are scaled to the whole download
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) log: LogArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  ctcp keygen --out client.key")]
pub(crate) struct KeygenArgs {
    /// File for the private key, readable by its owner only; an existing file is never overwritten
    #[arg(long, value_name = "FILE", default_value = "ctcp.key")]
    pub(crate) out: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  ctcp pubkey client.key")]
pub(crate) struct PubkeyArgs {
    /// Private key file
    pub(crate) file: PathBuf,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  ctcp server --listen 0.0.0.0:4433 --key server.key --client CLIENTS_PUBLIC_KEY"
)]
pub(crate) struct ServerArgs {
    /// Address and UDP port to listen on
    #[arg(long, value_name = "ADDR:PORT", value_parser = server_address, env = "CTCP_LISTEN", hide_env_values = true)]
    pub(crate) listen: SocketAddr,
    /// Another address at which clients reach this server, such as of another family or network; may be repeated. Clients
    /// with several paths use them, too. `--listen` must cover it
    #[arg(long, value_name = "ADDR:PORT", value_parser = further_address)]
    pub(crate) further_address: Vec<SocketAddr>,
    /// Private key file; created if it does not exist
    #[arg(long, value_name = "FILE", env = "CTCP_KEY", hide_env_values = true)]
    pub(crate) key: PathBuf,
    /// Public key of a client that may connect; may be repeated
    #[arg(long = "client", value_name = "PUBKEY")]
    pub(crate) client: Vec<PublicKey>,
    /// File with one client per line: its public key and optionally its name; `#` starts a comment. Changes of the file
    /// take effect while the server runs, at once after SIGHUP
    #[arg(long, value_name = "FILE", env = "CTCP_CLIENTS", hide_env_values = true)]
    pub(crate) clients: Option<PathBuf>,
    /// Accept any client that knows the server's public key
    #[arg(long, conflicts_with_all = ["client", "clients"])]
    pub(crate) any_client: bool,
    /// Public key of a relay (`ctcp relay`) that may carry datagrams of clients here; may be repeated. The clients themselves must be
    /// named as always
    #[arg(long, value_name = "PUBKEY")]
    pub(crate) relay: Vec<PublicKey>,
    /// Allow these targets: `public` for the internet, CIDR[:PORT], [V6CIDR]:PORT, *.name[:PORT] for all names below a
    /// name, or a host as host.name[:PORT]; may be repeated. If there is any such rule, all other targets are denied.
    /// Loopback, private and other special addresses need a rule for their range or a part of it; the server's own
    /// address needs a rule for exactly that address
    #[arg(long, value_name = "RULE")]
    pub(crate) allow_target: Vec<Rule>,
    /// Deny these targets, even if they are allowed
    #[arg(long, value_name = "RULE")]
    pub(crate) deny_target: Vec<Rule>,
    /// Let clients ask for UDP answers from addresses that they have not contacted, which peer-to-peer programs need
    #[arg(long)]
    pub(crate) udp_full_cone: bool,
    /// Serve the files of this directory to `ctcp get`; created if it does not exist
    #[arg(long, value_name = "DIR", env = "CTCP_FILES", hide_env_values = true)]
    pub(crate) files: Option<PathBuf>,
    /// Let clients store files there with `ctcp put`
    #[arg(long, requires = "files")]
    pub(crate) files_write: bool,
    /// Profile that clients may choose besides this server's own; may be repeated
    #[arg(long, value_name = "NAME", default_values = ["default", "ctcp", "tcp", "low-latency"])]
    pub(crate) grant: Vec<String>,
    /// Memory that the connections of all clients together may use; one client may use an eighth of what is free
    #[arg(long, value_name = "SIZE", default_value = "1gib", value_parser = parse_bytes)]
    pub(crate) memory: u64,
    /// Use this server's profile even if a client requests another
    #[arg(long, conflicts_with = "grant")]
    pub(crate) pin_profile: bool,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  ctcp relay --listen 0.0.0.0:4434 --key relay.key --client CLIENTS_PUBLIC_KEY --to server.example:4433=SERVERS_PUBLIC_KEY\n\nThe server names this relay with --relay, and the client with --via.",
    group = ArgGroup::new("destinations").required(true).multiple(true).args(["to", "allow_target"])
)]
pub(crate) struct RelayArgs {
    /// Address and UDP port to listen on
    #[arg(long, value_name = "ADDR:PORT", value_parser = server_address, env = "CTCP_LISTEN", hide_env_values = true)]
    pub(crate) listen: SocketAddr,
    /// Private key file; created if it does not exist
    #[arg(long, value_name = "FILE", env = "CTCP_KEY", hide_env_values = true)]
    pub(crate) key: PathBuf,
    /// Public key of a client, or of a relay before this one, that may use this relay; may be repeated
    #[arg(long, value_name = "PUBKEY", required = true)]
    pub(crate) client: Vec<PublicKey>,
    /// A server or a further relay to carry to, as clients name it; may be repeated
    #[arg(long, value_name = "HOST:PORT=PUBKEY")]
    pub(crate) to: Vec<Stop>,
    /// Also carry to any server or relay at these addresses, with rules as of `ctcp server --allow-target`: `public` for the internet,
    /// CIDR[:PORT], *.name[:PORT]; may be repeated. Not with `--mode forward`, which does not check the keys of stops
    #[arg(long, value_name = "RULE")]
    pub(crate) allow_target: Vec<Rule>,
    /// Carry to none of these, even if --allow-target allows them
    #[arg(long, value_name = "RULE", requires = "allow_target")]
    pub(crate) deny_target: Vec<Rule>,
    /// What to do about losses on the hops of this relay. `recode`: send combinations of what it holds. `repeat`: send lost symbols again.
    /// `forward`: nothing; UDP datagrams pass as they are, on a port of their own for each client. A server after it needs no `--relay`
    #[arg(long, value_name = "MODE", value_enum, default_value = "recode")]
    pub(crate) mode: RelayMode,
    /// How many symbols to hold in each direction of a connection; 1.4 KB each. Not used with `--mode forward`
    #[arg(long, value_name = "SYMBOLS", default_value_t = 512, value_parser = clap::value_parser!(u32).range(64..=16_384))]
    pub(crate) window: u32,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

/// What a relay does about losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RelayMode {
    Recode,
    Repeat,
    Forward,
}

/// The server to use and the key to use it with.
#[derive(Clone, Debug, Args)]
pub(crate) struct RemoteArgs {
    /// Address or name and UDP port of the server
    #[arg(long, value_name = "HOST:PORT", env = "CTCP_SERVER", hide_env_values = true)]
    pub(crate) server: ServerAddress,
    /// Public key of the server
    #[arg(long, value_name = "PUBKEY", env = "CTCP_SERVER_KEY", hide_env_values = true)]
    pub(crate) server_key: PublicKey,
    /// Private key file, as created by `ctcp keygen`
    #[arg(long, value_name = "FILE", env = "CTCP_KEY", hide_env_values = true)]
    pub(crate) key: PathBuf,
    /// Send from this network interface or local address (default: chosen by the system). May be repeated: each is a path,
    /// up to four at a time, and `--paths` says how they are used. `auto` takes every interface that has a route to the server
    #[arg(
        long,
        value_name = "IFACE_OR_ADDR",
        env = "CTCP_PATH",
        hide_env_values = true,
        value_delimiter = ','
    )]
    pub(crate) path: Vec<PathChoice>,
    /// Go through this relay; given several times, through one after the other, the nearest first. Relays separated by commas are
    /// side by side, each a path of the connection
    #[arg(
        long,
        value_name = "RELAY:PORT=PUBKEY[,...]",
        env = "CTCP_VIA",
        hide_env_values = true,
        value_delimiter = ' ',
        conflicts_with_all = ["path", "ticket_file"]
    )]
    pub(crate) via: Vec<Via>,
    /// How to use several paths. `aggregate`: all at once. `backup`: the first, and the next ones while it does not answer.
    /// `redundant`: as aggregate, and latency-sensitive data (small writes, UDP, profile low-latency) goes over each.
    /// `independent`: as aggregate, but each competes with other traffic as a connection of its own
    #[arg(long, value_name = "USE", env = "CTCP_PATHS", hide_env_values = true, default_value_t)]
    pub(crate) paths: PathMode,
    /// Keep a ticket of the server in this file. With it, the next run sends its first requests with its first packets, a
    /// round trip earlier
    #[arg(long, value_name = "FILE", env = "CTCP_TICKET_FILE", hide_env_values = true)]
    pub(crate) ticket_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  ctcp client --server vpn.example:4433 --server-key PUBKEY --key client.key --socks 127.0.0.1:1080"
)]
pub(crate) struct ClientArgs {
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
    /// Serve SOCKS5 here (default 127.0.0.1:1080 if no other listener is given)
    #[arg(long, value_name = "ADDR:PORT", value_parser = listen_address, env = "CTCP_SOCKS", hide_env_values = true)]
    pub(crate) socks: Option<SocketAddr>,
    /// Serve an HTTP proxy and a PAC file here
    #[arg(long, value_name = "ADDR:PORT", value_parser = listen_address, env = "CTCP_HTTP", hide_env_values = true)]
    pub(crate) http: Option<SocketAddr>,
    /// Forward a local address to a fixed target, such as 127.0.0.1:8080=10.0.0.5:80, low-latency:2222=10.0.0.5:22 for
    /// connections that may cost more bytes, or udp:5353=9.9.9.9:53 for datagrams; may be repeated
    #[arg(long, value_name = "[udp:|low-latency:]LISTEN=TARGET")]
    pub(crate) forward: Vec<Forward>,
    /// Tell SOCKS5 programs to send UDP to this IP address instead of the one they reached with TCP, if this proxy is behind
    /// address translation; 0.0.0.0 lets them choose
    #[arg(long, value_name = "ADDR", env = "CTCP_UDP_ADVERTISE", hide_env_values = true)]
    pub(crate) udp_advertise: Option<std::net::IpAddr>,
    /// Ask for UDP answers from addresses that were not contacted; the server must allow it
    #[arg(long)]
    pub(crate) udp_full_cone: bool,
    /// Tell programs that they are connected only when the target is: every failure gets its reason, a round trip later
    #[arg(long)]
    pub(crate) wait_for_targets: bool,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  ssh -o ProxyCommand='ctcp connect --server vpn.example:4433 --server-key PUBKEY --key client.key %h:%p' host"
)]
pub(crate) struct ConnectArgs {
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
    /// Target address, as the server sees it
    #[arg(value_name = "TARGET:PORT")]
    pub(crate) target: TargetAddress,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  ctcp get --server vpn.example:4433 --server-key PUBKEY --key client.key big.iso"
)]
pub(crate) struct GetArgs {
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
    /// Name of the file on the server
    pub(crate) name: String,
    /// Output file, `-` for standard output (default: the last part of the name, in this directory); an existing file
    /// is replaced
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  ctcp put --server vpn.example:4433 --server-key PUBKEY --key client.key notes.txt"
)]
pub(crate) struct PutArgs {
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
    /// File to send
    pub(crate) file: PathBuf,
    /// Its name on the server (default: the last part of the file's name)
    pub(crate) name: Option<String>,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

/// The options shared by server, client, connect, get and put.
#[derive(Clone, Debug, Args)]
pub(crate) struct CommonArgs {
    /// Profile to request: default, low-latency, ctcp or tcp
    #[arg(
        long,
        value_name = "NAME",
        default_value = "default",
        env = "CTCP_PROFILE",
        hide_env_values = true
    )]
    pub(crate) profile: String,
    /// Coding scheme instead of the profile's: block, sliding or plain
    #[arg(long, value_name = "NAME")]
    pub(crate) code: Option<String>,
    /// Congestion control instead of the profile's: default, ctcp, reno or cubic
    #[arg(long, value_name = "NAME")]
    pub(crate) congestion: Option<String>,
    /// Repair rule instead of the profile's: feedback, from-loss, algorithm-3 or fixed=R
    #[arg(long, value_name = "NAME")]
    pub(crate) redundancy: Option<String>,
    /// Serve Prometheus metrics here, at /metrics
    #[arg(long, value_name = "ADDR:PORT", value_parser = listen_address, env = "CTCP_METRICS", hide_env_values = true)]
    pub(crate) metrics: Option<SocketAddr>,
    /// Read options from this TOML file, under their long names; the environment and the command line take precedence
    /// (default for client commands: ~/.config/ctcp/client.toml, or below XDG_CONFIG_HOME, if it exists)
    #[arg(long, value_name = "FILE", env = "CTCP_CONFIG", hide_env_values = true)]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) log: LogArgs,
}

impl CommonArgs {
    /// The requested profile, with its parts replaced by options.
    pub(crate) fn profile(&self, catalogue: &Catalogue) -> Result<Profile, CliError> {
        let named = profile(catalogue, &self.profile)?;
        let part = |option: &str, error: UnknownName| CliError::usage(format!("{option}: {error}"));
        let code = match &self.code {
            Some(name) => catalogue.code(name).map_err(|error| part(&format!("--code {name}"), error))?,
            None => named.code,
        };
        let chosen = Profile {
            code,
            congestion: match &self.congestion {
                Some(name) => {
                    catalogue.control(name).map_err(|error| part(&format!("--congestion {name}"), error))?
                }
                None => named.congestion,
            },
            redundancy: match &self.redundancy {
                Some(text) => catalogue
                    .redundancy(text)
                    .map_err(|error| part(&format!("--redundancy {text}"), error))?,
                // `--code plain` alone is a reasonable request, although the profile's redundancy is of another code.
                None if !code.takes(&named.redundancy) && code.takes(&Redundancy::FEEDBACK) => {
                    Redundancy::FEEDBACK
                }
                None => named.redundancy,
            },
            ..named
        };
        chosen.check().map_err(|misfit| CliError::usage(misfit.to_string()))?;
        Ok(chosen)
    }
}

/// Looks up a profile by name.
pub(crate) fn profile(catalogue: &Catalogue, name: &str) -> Result<Profile, CliError> {
    catalogue.profile(name).map_err(|error| CliError::usage(format!("--profile {name}: {error}")))
}

impl ServerArgs {
    /// The profiles that clients may choose.
    pub(crate) fn grant(&self, catalogue: &Catalogue) -> Result<Grant, CliError> {
        if self.pin_profile {
            return Ok(Grant::nothing());
        }
        let named = |name: &String| match catalogue.profile(name) {
            Ok(profile) => Ok(profile.name),
            Err(error) => Err(CliError::usage(format!("--grant {name}: {error}"))),
        };
        Ok(Grant::of(self.grant.iter().map(named).collect::<Result<Vec<_>, _>>()?))
    }
}

/// The options for log output on standard error.
#[derive(Clone, Debug, Args)]
pub(crate) struct LogArgs {
    /// Log more; given twice, log everything
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Log only warnings and errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Format of log lines
    #[arg(long, value_enum, default_value = "text", env = "CTCP_LOG_FORMAT", hide_env_values = true)]
    pub(crate) log_format: LogFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people
    Text,
    /// One JSON object per line
    Json,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn the_demo_has_the_defaults_of_the_contract() {
        let cli = Cli::try_parse_from(["ctcp", "demo"]).expect("valid");
        let Command::Demo(demo) = cli.command else { panic!("another command") };
        assert_eq!(demo.rate, Rate::from_megabits_per_second(25));
        assert_eq!((demo.rtt, demo.size), (Duration::from_millis(20), 10_000_000));
    }

    #[test]
    fn an_invalid_listen_address_is_refused_with_the_expected_form() {
        for (text, wanted) in [
            ("4433", "expected ADDR:PORT, such as 127.0.0.1:4433, or 0.0.0.0:4433"),
            ("localhost:1080", "with an IP address, such as 127.0.0.1:1080"),
            ("::1:1080", "or [::1]:1080"),
        ] {
            for option in ["--socks", "--http", "--metrics"] {
                let words = ["ctcp", "client", option, text];
                let said = Cli::try_parse_from(words).expect_err("wrong").to_string();
                assert!(said.contains(wanted) && said.contains(option), "{said}");
            }
        }
        for (text, wanted) in [
            ("4433", "expected ADDR:PORT, such as 0.0.0.0:4433 for all addresses"),
            ("localhost:4433", "with an IP address, such as 0.0.0.0:4433 or [::]:4433"),
        ] {
            let words = ["ctcp", "server", "--listen", text];
            let said = Cli::try_parse_from(words).expect_err("wrong").to_string();
            assert!(said.contains(wanted), "{said}");
        }
    }

    #[test]
    fn an_invalid_seed_is_refused_with_the_expected_form() {
        let said = Cli::try_parse_from(["ctcp", "demo", "--seed", "x"]).expect_err("wrong").to_string();
        assert!(said.contains("expected a whole number from 0 to 18446744073709551615"), "{said}");
    }

    #[test]
    fn files_write_requires_files() {
        let words =
            ["ctcp", "server", "--listen", "127.0.0.1:1", "--key", "k", "--any-client", "--files-write"];
        assert!(Cli::try_parse_from(words).is_err());
    }
}
