import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { type ProcessPorts, ROLLCALL_PROGRAM } from "../../servers/rollcall.ts";

const CALL_TIMEOUT_MS = 60_000;

/** Calls a control plane in one process, as an operator and a load balancer do. */
export class PlaneClient {
  readonly #ports: ProcessPorts;
  readonly #token: string;
  readonly #home: string;

  /** @param home the home directory of the command line. */
  constructor(ports: ProcessPorts, token: string, home: string) {
    this.#ports = ports;
    this.#token = token;
    this.#home = home;
  }

  /** Make a call. Returns "answered", the code of an error, or a description of any other response. */
  async call(method: string, body: object): Promise<string> {
    try {
      const answer = await fetch(`http://127.0.0.1:${this.#ports.api}/${method}`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${this.#token}` },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(CALL_TIMEOUT_MS),
      });
      const text = await answer.text();
      return answer.ok ? "answered" : String(JSON.parse(text).code);
    } catch (error) {
      return String(error);
    }
  }

  async readyz(): Promise<string> {
    const answer = await fetch(`http://127.0.0.1:${this.#ports.probes}/readyz`);
    return answer.text();
  }

  /** Run doctor. Returns its findings, one line each. */
  async doctor(): Promise<string> {
    const at = `127.0.0.1:${this.#ports.api}`;
    const env = { ...process.env, ROLLCALL_TOKEN: this.#token, ROLLCALL_SERVER: at, HOME: this.#home };
    const words = [...process.execArgv, ROLLCALL_PROGRAM, "doctor", "-o", "json"];
    const ended = await promisify(execFile)(process.execPath, words, { env }).catch((error: unknown) => Object(error));
    const { findings = [] } = JSON.parse(ended.stdout || "{}");
    return findings
      .map(({ check, status, subject, found }: Readonly<Record<string, string>>) =>
        [check, status, subject, found].join(" "),
      )
      .join("\n");
  }
}
