import { connect } from "node:net";
import { damage } from "./damage.ts";
import type { Dice } from "./dice.ts";
import type { Answer } from "./send.ts";

const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
const EMPTY_SETTINGS = Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]);
/**
 * The HPACK encoding of `:method POST`, `:scheme http`, `:path /`, and a header whose name and value have one
 * letter each.
 */
const HEADERS = Buffer.from([0x83, 0x86, 0x84, 0x00, 0x01, 0x61, 0x01, 0x62]);
const HTTP1 = Buffer.from(
  "POST /rollcall.registry.v1.RegistryService/GetNode HTTP/1.1\r\nhost: a\r\ncontent-type: " +
    "application/json\r\ncontent-length: 2\r\n\r\n{}",
);
const LAST_TYPE = 12;
/** How long to wait for a connection to send something. The value affects only how long a run takes. */
const LISTEN_MS = 150;

/**
 * Return the bytes of a connection: HTTP/2 frames of any kind and length, or an HTTP/1.1 request, valid or
 * damaged.
 */
export function rawBytes(dice: Dice): Uint8Array {
  if (dice.chance(0.25)) return damage(HTTP1, dice);
  const frames = Array.from({ length: dice.int(1, 12) }, () => frame(dice));
  const whole = Buffer.concat([PREFACE, EMPTY_SETTINGS, ...frames]);
  return dice.chance(0.3) ? damage(whole, dice) : whole;
}

function frame(dice: Dice): Buffer {
  const type = dice.int(0, LAST_TYPE);
  const payload = dice.chance(0.4) ? HEADERS : dice.bytes(dice.pick([0, 1, 4, 5, 6, 8, 30, 300]));
  const head = Buffer.alloc(9);
  const length = dice.chance(0.1) ? dice.pick([0, 16_385, 2 ** 24 - 1]) : payload.length;
  head.writeUIntBE(length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(dice.pick([0, 1, 4, 5, 8, 255]), 4);
  head.writeUInt32BE(dice.pick([0, 1, 1, 1, 2, 3, 5, 2 ** 31 - 1, 2 ** 32 - 1]), 5);
  return Buffer.concat([head, payload]);
}

/** Open a connection, send bytes, and disconnect. Only the effect on other connections matters. */
export function sendRaw(origin: string, bytes: Uint8Array): Promise<Answer> {
  const { hostname, port } = new URL(origin);
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    const socket = connect(Number(port), hostname, () => socket.write(bytes));
    const finish = () => {
      clearTimeout(timer);
      socket.destroy();
      resolve({ status: 0, headers: {}, body: Buffer.concat(chunks), end: "silent" });
    };
    const timer = setTimeout(finish, LISTEN_MS);
    socket.on("data", (chunk: Buffer) => chunks.push(chunk));
    socket.on("error", finish);
    socket.on("close", finish);
  });
}
