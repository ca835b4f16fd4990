import { fork } from "node:child_process";
import { once } from "node:events";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { TestAuthority } from "@rollcall/testkit/certificates";
import type { BenchContext } from "../bench-context.ts";
import { freePort } from "./free-port.ts";

/** A receiver of webhooks in a separate process. */
export interface WebhookReceiver {
  readonly port: number;
  /** A file with a line "SUBJECT REVISION" for each delivery. */
  readonly file: string;
  /** The file with the authority that signed the receiver's certificate. */
  readonly caFile: string;
  /** Set the delay of the response to each delivery. */
  answerAfter(ms: number): void;
}

/** Start a receiver that accepts all deliveries. The receiver ends with the benchmark. */
export async function startWebhookReceiver(context: BenchContext): Promise<WebhookReceiver> {
  const authority = new TestAuthority();
  const { certFile, keyFile } = authority.write("receiver");
  const file = join(context.directory, "received");
  const port = await freePort();
  const program = new URL(`./webhook-receiver-main${extname(import.meta.url)}`, import.meta.url);
  const words = [String(port), certFile, keyFile, file, "0"];
  const receiver = fork(fileURLToPath(program), words, { stdio: ["ignore", "inherit", "inherit", "ipc"] });
  context.atEnd(async () => {
    receiver.kill("SIGKILL");
  });
  await once(receiver, "message");
  return { port, file, caFile: authority.caFile, answerAfter: (ms) => void receiver.send(ms) };
}
