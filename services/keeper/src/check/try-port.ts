import { get } from "node:http";
import { connect } from "node:net";
import type { Probe } from "../spec/read-spec.ts";
import type { PortOwner } from "./port-owner.ts";

export interface CheckResult {
  /**
   * Whether the check passed; null if unknown. If unknown, the earlier result stays, and the execution does not
   * become ready.
   */
  readonly passed: boolean | null;
  /** Why the check failed, or why its result is unknown. Empty if it passed. */
  readonly message: string;
}

/** How to reach the ports of an execution, and the time limit of a check. */
export interface PortContext {
  readonly host: string;
  /** Finds out who owns the socket that accepts connections to a port of the host. */
  readonly ownerOf: (port: number) => Promise<PortOwner>;
  readonly ports: Readonly<Record<string, number>>;
  readonly timeoutMs: number;
}

const PASSED: CheckResult = { passed: true, message: "" };

/**
 * Check a port once. The check passes only if the execution itself listens there, because another program may
 * have taken the port. Never rejects, and returns at the latest shortly after the timeout.
 */
export async function tryPort(
  probe: Exclude<Probe, { readonly kind: "command" }>,
  { host, ownerOf, ports, timeoutMs }: PortContext,
): Promise<CheckResult> {
  const port = ports[probe.port];
  if (port === undefined) return failed(`the execution has no port ${probe.port}`);
  try {
    const result = await (probe.kind === "tcp"
      ? tryTcp(host, port, timeoutMs)
      : tryHttp(host, port, probe.path, timeoutMs));
    return result === PASSED ? ofOwner(port, await ownerOf(port)) : result;
  } catch (error) {
    // Creating the request failed, because a job can define an impossible request, for example a path with a
    // space, or a port out of range.
    return failed(error instanceof Error ? error.message : String(error));
  }
}

function ofOwner(port: number, owner: PortOwner): CheckResult {
  switch (owner.kind) {
    case "own":
      return PASSED;
    case "other":
      return failed(`port ${port} is used by a process outside this execution; run \`ss -ltnp\` to see which`);
    case "unknown":
      return {
        passed: null,
        message: `cannot determine which process listens on port ${port}: ${owner.why}`.slice(0, 200),
      };
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

/** A failed check, with its message cut to a bounded length. */
export function failed(message: string): CheckResult {
  return { passed: false, message: message.slice(0, 200) };
}
