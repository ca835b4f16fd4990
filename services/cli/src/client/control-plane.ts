import type { DescService } from "@bufbuild/protobuf";
import { type Client, createClient, type Interceptor } from "@connectrpc/connect";
import { compressionGzip, createConnectTransport } from "@connectrpc/connect-node";
import type { GlobalOptions } from "../command.ts";
import type { ChosenContext } from "../contexts/context.ts";
import type { RenewedToken } from "../contexts/context-token.ts";
import { Failure, parseDurationMs } from "../failure.ts";
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
import { createClientTls, type Trust } from "./client-tls.ts";
import { findDataDirectory, readRunFile } from "./data-directory.ts";
import { rememberRevision } from "./remember-revision.ts";

/** Access to the public API. */
export interface ControlPlane {
  /** Where each service is. */
  readonly addresses: Addresses;
  /** A client of one service. The caller brings the service, so that no verb loads the stubs of another. */
  client<S extends DescService>(at: ServiceName, service: S): Client<S>;
  /** What a client of this service has to trust. */
  trust(at: ServiceName): Trust;
  /** The base URL by which other machines reach a service: the address that is used here, where no other is known. */
  elsewhere(at: ServiceName): string;
  /**
   * Make a call. When it fails, throw a Failure that reads "failed to <what>: <why>"; `reword` puts the server's words
   * into those of the command line.
   */
  attempt<T>(at: ServiceName, what: string, call: () => Promise<T>, reword?: (text: string) => string): Promise<T>;
  /** Say in one line why a call failed. */
  explain(at: ServiceName, error: unknown): Promise<string>;
}

/** How long a call may take unless --timeout says otherwise. */
const DEFAULT_TIMEOUT_MS = 10_000;

/** Find the control plane and the token for it. Nothing is sent before the first call. */
export function reachControlPlane(shell: Shell, options: GlobalOptions): ControlPlane {
  const dataDirectory = findDataDirectory(shell);
  const runFile = readRunFile(dataDirectory);
  const chosen = options.chosenContext?.() ?? null;
  const tls = createClientTls(withContextCa(options, shell, chosen), shell, runFile);
  const addresses = findAddresses(options, shell.env, runFile, tls.isMeant, chosen);
  const context = chosen === null ? null : { chosen, addresses: addressesOf(chosen.context, tls.isMeant) };
  const tokens = createTokenSource(options, shell, dataDirectory, runFile, context);
  const timeoutMs = options.timeout === undefined ? DEFAULT_TIMEOUT_MS : parseDurationMs("timeout", options.timeout);
  const remembering = rememberRevision();
  const callee = (service: ServiceName) => ({ service, baseUrl: addresses[service], timeoutMs });
  const clientOf = <S extends DescService>(at: ServiceName, service: S) => {
    const baseUrl = addresses[at];
    // HTTP/1.1: one round trip less than HTTP/2's preface and settings, and Node loads it faster.
    const transport = createConnectTransport({
      baseUrl,
      httpVersion: "1.1",
      nodeOptions: tls.optionsFor(baseUrl),
      defaultTimeoutMs: timeoutMs,
      // On this machine compression costs more than it saves.
      acceptCompression: isLoopback(baseUrl) ? [] : [compressionGzip],
      interceptors: [withToken(tokens.tokenFor(baseUrl)), remembering, until(shell.interrupted)],
    });
    return createClient(service, transport);
  };
  return {
    addresses,
    client: clientOf,
    trust: (at) => tls.trustFor(addresses[at]),
    elsewhere: (at) => {
      const { protocol, host } = new URL(addresses[at]);
      return host === runFile?.server && runFile.elsewhere ? `${protocol}//${runFile.elsewhere}` : addresses[at];
    },
    attempt: async (at, what, call, reword = (text) => text) => {
      try {
        return await call();
      } catch (cause) {
        // Loaded only now: a call that succeeds does not need it.
        const { describeFailure, isDistrust, isUnknownMethod } = await import("./describe-failure.ts");
        const known = callee(at);
        if (isUnknownMethod(cause)) {
          const { describeWrongService } = await import("./wrong-service.ts");
          const text = await describeWrongService(known, (service) => clientOf(at, service));
          if (text !== null) throw new Failure(`failed to ${what}: ${text}`, { cause });
        }
        const failure = `failed to ${what}: ${reword(describeFailure(cause, known))}`;
        if (!isDistrust(cause)) throw new Failure(failure, { cause });
        const { describeDistrust } = await import("./describe-distrust.ts");
        throw new Failure(`${failure}${await describeDistrust(known.baseUrl, tls.trustFor(known.baseUrl))}`, { cause });
      }
    },
    explain: async (at, error) => {
      const { describeBriefly } = await import("./describe-failure.ts");
      return describeBriefly(error, callee(at));
    },
  };
}

function withToken(token: string | RenewedToken | null): Interceptor {
  return (next) => async (request) => {
    const text = typeof token === "function" ? await token() : token;
    if (text !== null) request.header.set("authorization", `Bearer ${text}`);
    return await next(request);
  };
}

/** A context's authority is for its own addresses: it is ignored where others are named. */
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
