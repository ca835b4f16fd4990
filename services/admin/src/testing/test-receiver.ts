import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import type { TestAuthority } from "@rollcall/testkit/certificates";
import { Webhook } from "standardwebhooks";

/** A received delivery. */
export interface Received {
  readonly id: string;
  readonly type: string;
  readonly subject: string;
  readonly revision: bigint;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

/** How a receiver responds; a number is a status without a body. "hang" never responds. */
export type Answer = number | "hang" | ((response: ServerResponse) => void);

/** A webhook receiver over HTTPS, with a certificate from a test authority. */
export class TestReceiver {
  /** All deliveries, oldest first, regardless of the response. */
  readonly received: Received[] = [];
  /** Deliveries to which the receiver responded with 200 to 299. */
  readonly taken: Received[] = [];
  /** Decides how to respond to each delivery. */
  answer: (delivery: Received) => Answer = () => 204;
  /** Number of connections that clients have opened. */
  connections = 0;
  readonly #server: Server;

  constructor(authority: TestAuthority, names?: readonly string[]) {
    const { certPem, keyPem } = authority.issue(names === undefined ? {} : { names: [...names] });
    this.#server = createServer({ cert: certPem, key: keyPem }, (request, response) => {
      void this.#serve(request, response);
    });
    this.#server.on("connection", () => {
      this.connections += 1;
    });
  }

  async listen(port = 0): Promise<this> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", reject).listen(port, "127.0.0.1", resolve);
    });
    return this;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  url(path = "/hook?key=of-the-path"): string {
    return `https://127.0.0.1:${this.port}${path}`;
  }

  /** The revisions of a subject's accepted events, in order. */
  takenOf(subject: string): readonly bigint[] {
    return this.taken.filter((one) => one.subject === subject).map(({ revision }) => revision);
  }

  /** Verify a signature as the Standard Webhooks library does. Throws when it is invalid. */
  static verify({ headers, body }: Received, secret: string): unknown {
    return new Webhook(secret).verify(body, headers as Record<string, string>);
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks).toString();
    const { id, type, subject = "", revision = "0" } = JSON.parse(body);
    const delivery = { id, type, subject, revision: BigInt(revision), headers: request.headers, body };
    this.received.push(delivery);
    const answer = this.answer(delivery);
    if (answer === "hang") return;
    if (typeof answer === "function") return answer(response);
    if (answer >= 200 && answer <= 299) this.taken.push(delivery);
    response.writeHead(answer).end();
  }
}
