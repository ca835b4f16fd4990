import { get } from "node:http";
import { connect } from "node:net";
import type { Probe } from "../spec/read-spec.ts";
import type { PortOwner } from "./port-owner.ts";

/** The outcome of one try. */
export interface CheckResult {
  /** Null where that cannot be determined: what was found before stays, and nothing becomes ready by it. */
  readonly passed: boolean | null;
  /** Why not, or why that is unknown; empty when it passed. */
  readonly message: string;
}

/** Where ports of an execution are reached, and for how long a try may last. */
export interface PortContext {
  readonly host: string;
  /** Whose socket takes connections to a port there. */
  readonly ownerOf: (port: number) => Promise<PortOwner>;
  readonly ports: Readonly<Record<string, number>>;
  readonly timeoutMs: number;
}

const PASSED: CheckResult = { passed: true, message: "" };

/**
 * Try a port once. It passes only if the execution itself listens there: another program may have had the port before.
 * Never rejects, and takes hardly longer than its time.
 */
export async function tryPort(
  probe: Exclude<Probe, { readonly kind: "command" }>,
  { host, ownerOf, ports, timeoutMs }: PortContext,
): Promise<CheckResult> {
  const port = ports[probe.port];
  if (port === undefined) return failed(`it has no port ${probe.port}`);
  try {
    const result = await (probe.kind === "tcp"
      ? tryTcp(host, port, timeoutMs)
      : tryHttp(host, port, probe.path, timeoutMs));
    return result === PASSED ? ofOwner(port, await ownerOf(port)) : result;
  } catch (error) {
    // What a job asks for may be what no request can have: a path with a space, a port beyond all.
    return failed(error instanceof Error ? error.message : String(error));
  }
}

function ofOwner(port: number, owner: PortOwner): CheckResult {
  switch (owner.kind) {
    case "own":
      return PASSED;
    case "other":
      return failed(`a process that is not of this execution listens on port ${port}; \`ss -ltnp\` shows which`);
    case "unknown":
      return { passed: null, message: `cannot determine who listens on port ${port}: ${owner.why}`.slice(0, 200) };
  }
}

function tryTcp(host: string, port: number, timeoutMs: number): Promise<CheckResult> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    const settle = (result: CheckResult): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(result);
    };
    const timer = setTimeout(() => settle(failed(`no connection within ${timeoutMs} ms`)), timeoutMs);
    socket.once("connect", () => settle(PASSED));
    socket.once("error", (error) => settle(failed(error.message)));
  });
}

function tryHttp(host: string, port: number, path: string, timeoutMs: number): Promise<CheckResult> {
  return new Promise((resolve) => {
    const settle = (result: CheckResult): void => {
      clearTimeout(timer);
      request.destroy();
      resolve(result);
    };
    const request = get({ host, port, path, agent: false }, ({ statusCode = 0 }) => {
      settle(statusCode >= 200 && statusCode < 400 ? PASSED : failed(`answered with status ${statusCode}`));
    });
    const timer = setTimeout(() => settle(failed(`no answer within ${timeoutMs} ms`)), timeoutMs);
    request.on("error", (error) => settle(failed(error.message)));
  });
}

/** A try that failed, in words that are not too many. */
export function failed(message: string): CheckResult {
  return { passed: false, message: message.slice(0, 200) };
}
