import type { DescService } from "@bufbuild/protobuf";
import { type Client, createClient, type Interceptor } from "@connectrpc/connect";
import { compressionGzip, createConnectTransport } from "@connectrpc/connect-node";
import type { ChosenContext } from "../contexts/context.ts";
import type { RenewedToken } from "../contexts/context-token.ts";
import { Failure, parseDurationMs, Unreached, UsageError } from "../failure.ts";
import type { GlobalOptions } from "../invocation.ts";
import { printable } from "../output/text.ts";
import type { Shell } from "../shell.ts";
import { createTokenSource } from "./access-token.ts";
import {
  type Addresses,
  addressesOf,
  findAddresses,
  isLoopback,
  SERVICE_NAMES,
  type ServiceName,
} from "./addresses.ts";
import { createClientTls, type TlsOptions, type Trust } from "./client-tls.ts";
import { findDataDirectory, readRunFile } from "./data-directory.ts";
import { rememberRevision } from "./remember-revision.ts";

/** Access to the public API. */
export interface ControlPlane {
  readonly addresses: Addresses;
  /** A client of one service. The caller passes the service, so that each verb loads only the stubs that it uses. */
  client<S extends DescService>(at: ServiceName, service: S): Client<S>;
  /** The timeout of each call. */
  readonly timeoutMs: number;
  /** The TLS options for this service. Throws UsageError when a file cannot be used. */
  tls(at: ServiceName): TlsOptions;
  /** The authority and server name that clients of this service must trust. */
  trust(at: ServiceName): Trust;
  /**
   * The base URL of a service as other machines reach it, or the address that this program uses if no other address
   * is known.
   */
  elsewhere(at: ServiceName): string;
  /**
   * Make a call. If it fails, throw a Failure that reads "failed to <what>: <why>", or Unreached if there was no
   * response; `reword` translates the server's text into terms of the command line.
   */
  attempt<T>(at: ServiceName, what: string, call: () => Promise<T>, reword?: (text: string) => string): Promise<T>;
  /** Explain in one line why a call failed. */
  explain(at: ServiceName, error: unknown): Promise<string>;
}

/** The default of --timeout. */
const DEFAULT_TIMEOUT_MS = 10_000;

/**
 * Throws UsageError for a TLS flag if no address uses TLS, because the user expects a verified server. Variables are
 * ignored instead, because they can be meant for other servers.
 */
function refuseUnusedTls(options: GlobalOptions, addresses: Addresses): void {
  const { caFile, clientCert, clientKey, tlsServerName } = options;
  const flags = {
    ...{ "--ca-file": caFile, "--client-cert": clientCert, "--client-key": clientKey },
    "--tls-server-name": tlsServerName,
  };
  const [flag] = Object.entries(flags).find(([, value]) => Boolean(value)) ?? [];
  const isTls = SERVICE_NAMES.some((name) => new URL(addresses[name]).protocol === "https:");
  if (flag === undefined || isTls) return;
  throw new UsageError(
    `${flag} has no effect with ${addresses.registry}, which is clear text: use https://, or omit it`,
  );
}

/** Find the control plane and the token for it. Nothing is sent before the first call. */
export function reachControlPlane(shell: Shell, options: GlobalOptions): ControlPlane {
  const dataDirectory = findDataDirectory(shell);
  const runFile = readRunFile(dataDirectory);
  const chosen = options.chosenContext?.() ?? null;
  const tls = createClientTls(withContextCa(options, shell, chosen), shell, runFile);
  const addresses = findAddresses(options, shell.env, runFile, tls.isMeant, chosen);
  refuseUnusedTls(options, addresses);
  const context = chosen === null ? null : { chosen, addresses: addressesOf(chosen.context, tls.isMeant) };
  const tokens = createTokenSource(options, shell, dataDirectory, runFile, context);
  const timeoutMs = options.timeout === undefined ? DEFAULT_TIMEOUT_MS : parseDurationMs("timeout", options.timeout);
  const isAddressNamed = chosen !== null || isNamed(options, shell.env);
  const remembering = rememberRevision();
  const callee = (service: ServiceName) => ({ service, baseUrl: addresses[service], timeoutMs });
  const clientOf = <S extends DescService>(at: ServiceName, service: S) => {
    const baseUrl = addresses[at];
    // Use HTTP/1.1, which saves the round trip of HTTP/2's preface and settings, and which Node.js loads faster.
    const transport = createConnectTransport({
      baseUrl,
      httpVersion: "1.1",
      nodeOptions: tls.optionsFor(baseUrl),
      defaultTimeoutMs: timeoutMs,
      // Do not compress on this machine, where compression costs more than it saves.
      acceptCompression: isLoopback(baseUrl) ? [] : [compressionGzip],
      interceptors: [withToken(tokens.tokenFor(baseUrl)), remembering, until(shell.interrupted)],
    });
    return createClient(service, transport);
  };
  return {
    addresses,
    client: clientOf,
    timeoutMs,
    tls: (at) => tls.optionsFor(addresses[at]),
    trust: (at) => tls.trustFor(addresses[at]),
    elsewhere: (at) => {
      const { protocol, host } = new URL(addresses[at]);
      return host === runFile?.server && runFile.elsewhere ? `${protocol}//${runFile.elsewhere}` : addresses[at];
    },
    attempt: async (at, what, call, reword = (text) => text) => {
      const work = shell.progress?.begin(what);
      try {
        return await call();
      } catch (cause) {
        // Loaded only now, because a call that succeeds does not need it.
        const { describeFailure, isDistrust, isUnknownMethod, isUnreached, mayBeElsewhere } = await import(
          "./describe-failure.ts"
        );
        const known = callee(at);
        if (isUnknownMethod(cause)) {
          const { describeWrongService } = await import("./wrong-service.ts");
          const text = await describeWrongService(known, (service) => clientOf(at, service));
          if (text !== null) throw new Failure(`failed to ${what}: ${text}`, { cause });
        }
        const here = mayBeElsewhere(cause, known.baseUrl)
          ? await otherControlPlane(shell, dataDirectory, isAddressNamed ? new URL(known.baseUrl).host : null)
          : "";
        const failure = `failed to ${what}: ${reword(describeFailure(cause, known))}${here}`;
        if (!isUnreached(cause)) throw new Failure(failure, { cause });
        if (!isDistrust(cause)) throw new Unreached(failure, { cause });
        const { describeDistrust } = await import("./describe-distrust.ts");
        throw new Unreached(`${failure}${await describeDistrust(known.baseUrl, tls.trustFor(known.baseUrl))}`, {
          cause,
        });
      } finally {
        work?.end();
      }
    },
    explain: async (at, error) => {
      const { describeBriefly } = await import("./describe-failure.ts");
      return describeBriefly(error, callee(at));
    },
  };
}

/** Whether an option or a variable names an address. */
function isNamed(options: GlobalOptions, env: Shell["env"]): boolean {
  return (["server", ...SERVICE_NAMES] as const).some((it) => options[it] || env[`ROLLCALL_${it.toUpperCase()}`]);
}

const MOST_SHOWN = 3;

/**
 * A hint at the user's control planes that run with other data directories; empty if there is none. If the user named
 * an address, `host` is that address, and only a control plane at that address is mentioned.
 */
async function otherControlPlane(shell: Shell, dataDirectory: string, host: string | null): Promise<string> {
  const { controlPlanesHere } = await import("./running-here.ts");
  return controlPlanesHere(shell)
    .filter((running) => running.dataDirectory !== dataDirectory && (host === null || running.server === host))
    .slice(0, MOST_SHOWN)
    .map(({ server, dataDirectory: directory }) => {
      const where = `your control plane in ${directory} is running at ${server}`;
      return `\nhint: ${printable(`${where}: set ROLLCALL_DATA_DIR=${directory} to use it`)}`;
    })
    .join("");
}

function withToken(token: string | RenewedToken | null): Interceptor {
  return (next) => async (request) => {
    const text = typeof token === "function" ? await token() : token;
    if (text !== null) request.header.set("authorization", `Bearer ${text}`);
    return await next(request);
  };
}

/** A context's authority is only for the context's addresses, so it is ignored when other addresses are named. */
function withContextCa(
  options: GlobalOptions,
  { env }: Pick<Shell, "env">,
  chosen: ChosenContext | null,
): GlobalOptions {
  const caFile = chosen?.context.caFile ?? null;
  const services = ["server", ...SERVICE_NAMES] as const;
  const isElsewhere = services.some((it) => options[it] || (!chosen?.isNamed && env[`ROLLCALL_${it.toUpperCase()}`]));
  const isSaid = Boolean(options.caFile || env.ROLLCALL_CA_FILE);
  return caFile === null || isElsewhere || isSaid ? options : { ...options, caFile };
}

function until(interrupted: AbortSignal): Interceptor {
  return (next) => (request) => next({ ...request, signal: AbortSignal.any([request.signal, interrupted]) });
}
