import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { request as requestHttps } from "node:https";

const PORT = 7_700;

/** The response to a browser. */
export interface Answer {
  readonly status: number;
  readonly type: string;
  readonly text: string;
}

/** The address of an HTTPS server, and the name in its certificate. */
export interface WebPlace {
  readonly address: string;
  readonly name: string;
  /** The authority that signed the server's certificate, in PEM. */
  readonly ca: string;
}

interface Asked {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

async function ask({ address, name, ca }: WebPlace, { method, path, headers, body }: Asked): Promise<IncomingMessage> {
  const host = `${name}:${PORT}`;
  const place = { host: address, servername: name, port: PORT, ca, agent: false };
  const request = requestHttps({ ...place, method, path, headers: { host, ...headers } });
  request.end(body);
  const [answer] = (await once(request, "response")) as [IncomingMessage];
  return answer;
}

async function read(answer: IncomingMessage): Promise<Answer> {
  let text = "";
  for await (const part of answer.setEncoding("utf8")) text += part;
  return { status: answer.statusCode ?? 0, type: answer.headers["content-type"] ?? "", text };
}

/** Read a page of the console or a resource for programs. */
export async function readPage(place: WebPlace, path: string, headers: Asked["headers"] = {}): Promise<Answer> {
  return read(await ask(place, { method: "GET", path, headers }));
}

/** A browser with the console. It makes the same calls as the console's pages. */
export class ConsoleBrowser {
  readonly #place: WebPlace;
  #cookie = "";
  #proof = "";

  constructor(place: WebPlace) {
    this.#place = place;
  }

  /** Open a page. */
  open(path: string): Promise<Answer> {
    return readPage(this.#place, path, { accept: "text/html", "sec-fetch-mode": "navigate" });
  }

  async signIn(accessToken: string): Promise<void> {
    const answer = await this.#post("/rollcall.console.v1.ConsoleService/SignIn", { accessToken });
    this.#cookie = answer.headers["set-cookie"]?.[0]?.split(";", 1)[0] ?? "";
    const { status, text } = await read(answer);
    if (status !== 200) throw new Error(`not signed in: ${status} ${text}`);
    this.#proof = (JSON.parse(text) as { readonly proof: string }).proof;
  }

  /** Call a method of the API in the existing session. */
  async call(method: string, message: object = {}): Promise<Answer> {
    return read(await this.#post(method, message));
  }

  #post(path: string, message: object): Promise<IncomingMessage> {
    const session = this.#proof === "" ? {} : { cookie: this.#cookie, "x-rollcall-console": this.#proof };
    const origin = `https://${this.#place.name}:${PORT}`;
    const headers = { origin, "content-type": "application/json", ...session };
    return ask(this.#place, { method: "POST", path, headers, body: JSON.stringify(message) });
  }
}
