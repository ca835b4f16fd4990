import { type ForeignKey, type ForeignMeaning, formatAddress, parseAddress, type Written } from "@rollcall/config";
import { isBeyondLoopback } from "../../control-plane/process-plan.ts";

/** The port at which agents register, unless it is configured otherwise. */
const API_PORT = 7700;

/** Keys, or sections, that mean nothing here; and why. */
export function nothing(why: string, paths: readonly string[]): readonly ForeignKey[] {
  return paths.map((path) => ({ path, meaning: () => ({ kind: "nothing", why }) }));
}

/** A key that is one of ours by another name, with the same values. */
export function same(path: string, ours: string, note = ""): ForeignKey {
  return { path, meaning: (written) => ({ kind: "sets", path: ours, written, note }) };
}

/** A switch that turns one of ours on; turned off, it means nothing. */
export function turnsOn(path: string, ours: string): ForeignKey {
  return {
    path,
    meaning: (written) =>
      written === "true"
        ? { kind: "sets", path: ours, written, note: "" }
        : { kind: "nothing", why: `${ours} is off unless it is turned on` },
  };
}

/** A key whose values are words of another vocabulary; what is not in the table means nothing. */
export function words(path: string, ours: string, table: Readonly<Record<string, string>>): ForeignKey {
  return {
    path,
    meaning: (written) => {
      const word = typeof written === "string" ? (written.split(".").at(-1) ?? "") : "";
      const value = table[word.toLowerCase()];
      return value === undefined
        ? { kind: "nothing", why: `${ours} knows no such value` }
        : { kind: "sets", path: ours, written: value, note: "" };
    },
  };
}

/**
 * Where a node finds its orchestrator, or several: the agent registers at the same host, at the port of Rollcall's API.
 * Their ports speak other protocols.
 */
export function serverOf(path: string): ForeignKey {
  return {
    path,
    meaning: (written) => {
      const host = hostOf(firstOf(written));
      if (host === null) {
        return { kind: "nothing", why: "it names no host; set Compute.Server" };
      }
      const server = formatAddress({ host, port: API_PORT });
      const note = `the agent registers at ${server}; set Compute.Server if the control plane is elsewhere or has TLS`;
      return { kind: "sets", path: "Compute.Server", written: server, note };
    },
  };
}

/**
 * Where a server listens. It is followed beyond loopback only where that is safe, or declared to be
 * meant.
 */
export function listenHost(path: string): ForeignKey {
  return {
    path,
    meaning: (written, isSet): ForeignMeaning => {
      const host = typeof written === "string" ? written : "";
      const isSafe = ["TLS.CertFile", "Up.TLS", "Listen.InsecurePlaintext"].some(isSet);
      if (isBeyondLoopback(host) && !isSafe) {
        const why =
          "it would listen to other machines in clear text; set Listen.Host, with TLS.CertFile, Up.TLS or " +
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

/** The host of "nats://token@host:4222", "host:4222", "http://host:8000" or "host"; null if it is not one. */
function hostOf(text: string): string | null {
  const authority = text
    .trim()
    .replace(/^[a-z][a-z0-9+.-]*:\/\//i, "")
    .replace(/\/.*$/, "");
  const place = authority.slice(authority.lastIndexOf("@") + 1);
  const address = parseAddress(/:\d+$/.test(place) ? place : `${place}:${API_PORT}`);
  return address?.host ?? null;
}
