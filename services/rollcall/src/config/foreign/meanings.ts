import { type ForeignKey, type ForeignMeaning, formatAddress, parseAddress, type Written } from "@rollcall/config";
import { isBeyondLoopback } from "../../control-plane/process-plan.ts";

/** The default port where agents register. */
const API_PORT = 7700;

/** Keys or sections that have no effect, with the reason. */
export function nothing(why: string, paths: readonly string[]): readonly ForeignKey[] {
  return paths.map((path) => ({ path, meaning: () => ({ kind: "nothing", why }) }));
}

/**
 * Keys or sections that protect something in the other program and have no effect in Rollcall. Each causes a warning
 * with the reason.
 */
export function protection(why: string, paths: readonly string[]): readonly ForeignKey[] {
  return paths.map((path) => ({ path, meaning: () => ({ kind: "nothing", why, isProtection: true }) }));
}

/** A key that has the same values as one of our keys, under another name. */
export function same(path: string, ours: string, note = ""): ForeignKey {
  return { path, meaning: (written) => ({ kind: "sets", path: ours, written, note }) };
}

/** A key that sets one of our keys, or has no effect if our key `needed` is not set. */
export function sameWith(path: string, ours: string, needed: string): ForeignKey {
  return {
    path,
    meaning: (written, surroundings) =>
      surroundings.ours(needed) === undefined
        ? { kind: "nothing", why: `${ours} has no effect without ${needed}` }
        : { kind: "sets", path: ours, written, note: "" },
  };
}

const YES = ["true", "yes", "on", "1"];
const NO = ["false", "no", "off", "0"];

function isOneOf(words: readonly string[], written: Written | undefined): boolean {
  return typeof written === "string" && words.includes(written.toLowerCase());
}

/** A switch that turns on one of our keys. The switch has no effect when it is off. */
export function turnsOn(path: string, ours: string, unless?: string): ForeignKey {
  return {
    path,
    meaning: (written, surroundings) => {
      if (!isOneOf(YES, written)) return { kind: "nothing", why: `${ours} is off by default` };
      return unless !== undefined && surroundings.ours(unless) !== undefined
        ? { kind: "nothing", why: `${unless} is also set` }
        : { kind: "sets", path: ours, written: "true", note: "" };
    },
  };
}

/** A switch that turns off one of our keys. The switch has no effect when it is on. */
export function turnsOff(path: string, ours: string): ForeignKey {
  return {
    path,
    meaning: (written) =>
      isOneOf(NO, written)
        ? { kind: "sets", path: ours, written: "false", note: "" }
        : { kind: "nothing", why: `${ours} is on by default` },
  };
}

/** A key whose values have other names in Rollcall. Values missing from the table have no effect. */
export function words(path: string, ours: string, table: Readonly<Record<string, string>>): ForeignKey {
  return {
    path,
    meaning: (written) => {
      const word = typeof written === "string" ? (written.split(".").at(-1) ?? "") : "";
      const value = table[word.toLowerCase()];
      return value === undefined
        ? { kind: "nothing", why: `${ours} has no such value` }
        : { kind: "sets", path: ours, written: value, note: "" };
    },
  };
}

/** Our keys that show that an agent uses TLS. */
const AGENT_TLS = ["Compute.TLS.CAFile", "Compute.TLS.CAFingerprint", "Compute.TLS.CertFile", "Compute.TLS.ServerName"];
const SECURE_SCHEME = /^(tls|wss|https):\/\//i;

/**
 * The addresses of a node's orchestrators. The agent registers at the same host, but at the port of Rollcall's API,
 * because the other program's port has another protocol. An encrypted connection stays encrypted.
 */
export function serverOf(path: string): ForeignKey {
  return {
    path,
    meaning: (written, { ours }) => {
      const first = firstOf(written);
      const host = hostOf(first);
      if (host === null) {
        return { kind: "nothing", why: "it contains no host; set Compute.Server" };
      }
      const isSecure =
        SECURE_SCHEME.test(first.trim()) ||
        isOneOf(YES, ours("Compute.TLS.RequireTLS")) ||
        AGENT_TLS.some((it) => ours(it) !== undefined);
      const address = formatAddress({ host, port: API_PORT });
      const server = isSecure ? `https://${address}` : address;
      const elsewhere = isSecure ? "" : " or has TLS";
      const note = `the agent registers at ${server}; set Compute.Server if the control plane is elsewhere${elsewhere}`;
      return { kind: "sets", path: "Compute.Server", written: server, note };
    },
  };
}

/** The first or last port that the scheduler can give to executions. */
export function portsOf(path: string, other: string, isFirst: boolean): ForeignKey {
  return {
    path,
    meaning: (written, { theirs }) => {
      const end = theirs(other);
      if (typeof written !== "string" || typeof end !== "string") {
        return { kind: "nothing", why: `it also needs ${other}; set Work.Ports` };
      }
      const range = isFirst ? `${written}-${end}` : `${end}-${written}`;
      return { kind: "sets", path: "Work.Ports", written: range, note: "" };
    },
  };
}

/** Limits for executions, keyed by resource. An empty limit counts as not set. */
export function capacityOf(path: string): ForeignKey {
  return {
    path,
    meaning: (written) => {
      const limits = typeof written === "object" && !Array.isArray(written) ? Object.entries(written) : [];
      const set = limits.filter(([, amount]) => amount !== "");
      if (set.length === 0) return { kind: "nothing", why: "it sets no limit" };
      return { kind: "sets", path: "Compute.AllocatedCapacity", written: Object.fromEntries(set), note: "" };
    },
  };
}

/**
 * A secret that nodes need to join the other program. Rollcall does not use it, but joining must not become easier:
 * nodes need a join token, unless an operator approves each node.
 */
export function joinSecret(path: string): ForeignKey {
  const notTaken = "it is not a join token; create one for Compute.JoinToken with `rollcall token create`";
  return {
    path,
    meaning: (_written, { ours }) => {
      if (isOneOf(YES, ours("Orchestrator.NodeManager.ManualApproval"))) {
        return { kind: "nothing", why: `${notTaken}. An operator must approve each node`, isProtection: true };
      }
      const note = `nodes must join with a token here too; ${notTaken}`;
      return { kind: "sets", path: "Orchestrator.NodeManager.JoinTokens", written: "strict", note };
    },
  };
}

/** The listen address. An address beyond loopback is accepted only if TLS is on or clear text is explicitly allowed. */
export function listenHost(path: string): ForeignKey {
  return {
    path,
    meaning: (written, { ours }): ForeignMeaning => {
      const host = typeof written === "string" ? written : "";
      const isSafe =
        ours("TLS.CertFile") !== undefined ||
        ["Up.TLS", "Listen.InsecurePlaintext"].some((it) => isOneOf(YES, ours(it)));
      if (isBeyondLoopback(host) && !isSafe) {
        const why =
          "other machines could connect in clear text; set Listen.Host, with TLS.CertFile, Up.TLS or " +
          "Listen.InsecurePlaintext";
        return { kind: "nothing", why };
      }
      return { kind: "sets", path: "Listen.Host", written, note: "" };
    },
  };
}

function firstOf(written: Written): string {
  if (typeof written === "string") return written.split(",")[0] ?? "";
  const [first] = Array.isArray(written) ? written : [];
  return typeof first === "string" ? first : "";
}

/** The host of "nats://token@host:4222", "host:4222", "http://host:8000" or "host"; null for anything else. */
function hostOf(text: string): string | null {
  const authority = text
    .trim()
    .replace(/^[a-z][a-z0-9+.-]*:\/\//i, "")
    .replace(/\/.*$/, "");
  const place = authority.slice(authority.lastIndexOf("@") + 1);
  const address = parseAddress(/:\d+$/.test(place) ? place : `${place}:${API_PORT}`);
  return address?.host ?? null;
}
