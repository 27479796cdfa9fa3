// Sends datagrams of the given sizes to an echo through a SOCKS5 proxy, with the npm package socks.
//
// `node socks.js PROXY TARGET PORT SIZE...` prints a line for each size, as `udp.py sizes` does.
const dgram = require('dgram');
const { SocksClient } = require('socks');

const TRIES = 4;
const PATIENCE = 1500; // milliseconds

const [proxy, target, port, ...sizes] = process.argv.slice(2);
const [host, proxyPort] = proxy.split(':');

function echoed(socket, relay, data) {
    return new Promise((resolve) => {
        let attempt = 0;
        let timer;
        const end = (outcome) => {
            clearTimeout(timer);
            socket.removeAllListeners('message');
            resolve(outcome);
        };
        const send = () => {
            attempt += 1;
            if (attempt > TRIES) return end('silence');
            const frame = SocksClient.createUDPFrame({ remoteHost: { host: target, port: Number(port) }, data });
            socket.send(frame, relay.port, relay.host, (error) => error && end(`error ${error.message}`));
            timer = setTimeout(send, PATIENCE);
        };
        socket.on('message', (frame) => {
            if (SocksClient.parseUDPFrame(frame).data.equals(data)) end(`ok ${attempt}`);
        });
        send();
    });
}

async function main() {
    const socket = dgram.createSocket('udp4').bind();
    const client = new SocksClient({
        proxy: { host, port: Number(proxyPort), type: 5 },
        command: 'associate',
        destination: { host: '0.0.0.0', port: 0 },
    });
    client.on('established', async ({ remoteHost }) => {
        for (const text of sizes) {
            const size = Number(text);
            const data = Buffer.from(Array.from({ length: size }, (_, at) => (at * 31 + size) % 251));
            console.log(`${size} ${await echoed(socket, remoteHost, data)}`);
        }
        process.exit(0);
    });
    client.on('error', (error) => {
        console.log(`error ${error.message}`);
        process.exit(1);
    });
    client.connect();
}

main();
