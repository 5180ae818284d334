//! How a user names a rig that lives elsewhere: `cmd:PROGRAM ARGS`, `unix:PATH` or `tcp:HOST:PORT`.

use std::fmt;
use std::path::PathBuf;

/// Where a rig answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A program to start: itself and its arguments. It answers on its standard output.
    Command(Vec<String>),
    /// A Unix socket that a program listens on.
    Unix(PathBuf),
    /// A host and port that a program listens on.
    Tcp(String),
}

impl Address {
    /// Whether a name has the form of an address, valid or not.
    pub fn is_address(name: &str) -> bool {
        ["cmd:", "unix:", "tcp:"].iter().any(|start| name.starts_with(start))
    }

    /// Reads an address, or says what is wrong with it.
    pub fn parse(name: &str) -> Result<Self, String> {
        let (scheme, rest) = name.split_once(':').unwrap_or((name, ""));
        match scheme {
            "cmd" => match words(rest)? {
                words if words.is_empty() => Err("cmd: wants a program and its arguments".into()),
                words => Ok(Self::Command(words)),
            },
            "unix" if rest.is_empty() => Err("unix: wants the path of a socket".into()),
            "unix" => Ok(Self::Unix(rest.into())),
            "tcp" => match rest.rsplit_once(':') {
                Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => {
                    Ok(Self::Tcp(rest.into()))
                }
                _ => Err("tcp: wants HOST:PORT".into()),
            },
            _ => Err("cmd:PROGRAM ARGS, unix:PATH or tcp:HOST:PORT is wanted".into()),
        }
    }
}

/// As [`Address::parse`] reads it.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(words) => {
                let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
                write!(f, "cmd:{}", words.join(" "))
            }
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(host) => write!(f, "tcp:{host}"),
        }
    }
}

/// A word that [`words`] reads as one.
fn quoted(word: &str) -> String {
    let special = |c: char| c.is_whitespace() || matches!(c, '\'' | '"' | '\\');
    match (word.is_empty() || word.contains(special), word.contains('\'')) {
        (false, _) => word.to_owned(),
        (true, false) => format!("'{word}'"),
        (true, true) => format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}

/// Splits a command as a shell does: at blanks, but not within quotes or after a backslash. Nothing else of a shell
/// is understood, so that no character of a path surprises.
fn words(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match (quote, character) {
            (Some(open), _) if character == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => {
                let next = characters.next().ok_or("the command ends with a backslash")?;
                word.get_or_insert_default().push(next);
            }
            (None, _) if character.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(character),
        }
    }
    match quote {
        Some(open) => Err(format!("the quote {open} is not closed")),
        None => {
            words.extend(word);
            Ok(words)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_a_shell_would() {
        let command = Address::parse(r#"cmd:python3 'my rig.py' --pose "a \"b\"" c\ d ''"#);
        let want = ["python3", "my rig.py", "--pose", "a \"b\"", "c d", ""].map(String::from);
        assert_eq!(command, Ok(Address::Command(want.to_vec())));
        let strange = [r"a\b", r#"it's "so" \"#, "", " ", "\t'", "plain"].map(String::from).to_vec();
        for command in [Address::Command(want.to_vec()), Address::Command(strange)] {
            assert_eq!(Address::parse(&command.to_string()), Ok(command), "written and read again");
        }
        assert_eq!(Address::Command(vec!["rig".into(), "-x".into()]).to_string(), "cmd:rig -x");
        assert_eq!(Address::parse("unix:/tmp/rig"), Ok(Address::Unix("/tmp/rig".into())));
        assert_eq!(Address::parse("tcp:[::1]:99"), Ok(Address::Tcp("[::1]:99".into())));
        for bad in ["cmd:", "cmd:'a", "cmd:a\\", "unix:", "tcp:host", "tcp::7", "tcp:host:70000", "file"] {
            assert!(Address::parse(bad).is_err(), "{bad}");
        }
        assert!(Address::is_address("tcp:x") && !Address::is_address("rook"));
    }
}
