//! A server of names that is slow, silent or behind the times.

use super::Hosts;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsFd;
use std::thread::JoinHandle;

/// The server, at 127.0.0.1 of one host, which asks it from now on. Ends when this is dropped.
pub(super) struct Names {
    socket: UdpSocket,
    thread: Option<JoinHandle<usize>>,
}

impl Names {
    /// `answer` is given the number of the question for an address, from 0 on, and may take its time; `None`: no answer at all.
    pub(super) fn serve(
        hosts: &Hosts,
        side: usize,
        mut answer: impl FnMut(usize) -> Option<Ipv4Addr> + Send + 'static,
    ) -> Self {
        hosts.asks(side, "nameserver 127.0.0.1\n");
        let space = File::open(format!("/run/netns/{}", hosts.namespaces[side])).unwrap();
        // A thread may be in another namespace than its process, and its sockets stay there.
        let bind = move || {
            move_into_link_name_space(space.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            UdpSocket::bind("127.0.0.1:53").unwrap()
        };
        let socket = std::thread::spawn(bind).join().unwrap();
        let server = socket.try_clone().unwrap();
        let thread = std::thread::spawn(move || {
            let (mut question, mut count) = ([0; 512], 0);
            loop {
                let (len, from) = server.recv_from(&mut question).unwrap();
                if len == 0 {
                    return count;
                }
                let asks_for_v4 = kind(&question[..len]) == V4;
                let address = if asks_for_v4 { answer(count).map(Some) } else { Some(None) };
                count += usize::from(asks_for_v4);
                if let Some(address) = address {
                    // Whoever asked may have given up, or ended.
                    let _ = server.send_to(&reply(&question[..len], address), from);
                }
            }
        });
        Self { socket, thread: Some(thread) }
    }

    /// How often an address was asked for.
    pub(super) fn end(mut self) -> usize {
        self.stop().unwrap()
    }

    fn stop(&mut self) -> Option<usize> {
        let thread = self.thread.take()?;
        self.socket.send_to(&[], self.socket.local_addr().ok()?).ok()?;
        thread.join().ok()
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A header, with the count of answers at 6.
const HEADER: usize = 12;
/// The kind of a question for an IPv4 address, and its class.
const V4: [u8; 2] = [0, 1];
const INTERNET: [u8; 2] = [0, 1];

/// Where the name ends that is asked for.
fn end_of_name(message: &[u8]) -> usize {
    let mut at = HEADER;
    while message[at] > 0 {
        at += usize::from(message[at]) + 1;
    }
    at + 1
}

fn kind(question: &[u8]) -> [u8; 2] {
    let at = end_of_name(question);
    [question[at], question[at + 1]]
}

/// That the name has this address, or none of the kind that was asked for (RFC 1035, section 4.1).
fn reply(question: &[u8], address: Option<Ipv4Addr>) -> Vec<u8> {
    let mut message = question[..end_of_name(question) + 4].to_vec();
    let answers = u8::from(address.is_some());
    message[2..HEADER].copy_from_slice(&[0x81, 0x80, 0, 1, 0, answers, 0, 0, 0, 0]);
    if let Some(address) = address {
        // The name as above, not to be kept, four bytes.
        message.extend([0xc0, HEADER as u8]);
        message.extend([V4, INTERNET, [0, 0], [0, 0], [0, 4]].concat());
        message.extend(address.octets());
    }
    message
}
