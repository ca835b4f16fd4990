import { type LookupAddress, lookup as systemLookup } from "node:dns";
import type { LookupFunction } from "node:net";
import { evaluateAddress, type Network } from "@rollcall/domain";
import { Limiter } from "@rollcall/rpc";

/** No connection was made: the name resolves to an address that deliveries must not use. */
export class AddressRefusedError extends Error {
  override readonly name = "AddressRefusedError";
}

/** Resolves a name to all its addresses. */
export type Resolve = (hostname: string) => Promise<readonly LookupAddress[]>;

/** Resolves a name with the system's hosts file and DNS. */
export const systemResolve: Resolve = (hostname) =>
  new Promise((resolve, reject) => {
    systemLookup(hostname, { all: true, verbatim: true }, (error, addresses) => {
      if (error === null) resolve(addresses);
      else reject(error);
    });
  });

/**
 * Maximum number of concurrent lookups. Each lookup occupies one of the few threads that file and key
 * operations also need.
 */
const NAMES_AT_A_TIME = 2;

/** Limit concurrent lookups. Callers that ask for the same name at the same time share one lookup. */
export function boundedResolve(resolve: Resolve): Resolve {
  const limiter = new Limiter(NAMES_AT_A_TIME);
  const underWay = new Map<string, Promise<readonly LookupAddress[]>>();
  const find = async (hostname: string) => {
    // Use a signal that never aborts, because a caller stops waiting when its time is up, and this lookup
    // serves all callers of the name.
    const leave = await limiter.enter(new AbortController().signal);
    try {
      return await resolve(hostname);
    } finally {
      leave();
      underWay.delete(hostname);
    }
  };
  return (hostname) => {
    const found = underWay.get(hostname) ?? find(hostname);
    underWay.set(hostname, found);
    return found;
  };
}

/**
 * Create a lookup function for sockets that returns only allowed addresses. One forbidden address rejects the
 * name. The socket connects to an address that was checked, so changing the name's addresses in between has no
 * effect.
 */
export function guardedLookup(resolve: Resolve, allowed: readonly Network[]): LookupFunction {
  return (hostname, options, callback) => {
    const evaluated = resolve(hostname).then((addresses) => {
      const [first] = addresses;
      if (first === undefined) throw new AddressRefusedError(`${hostname} has no address`);
      for (const { address } of addresses) checkAddress(address, allowed, hostname);
      return { addresses, first };
    });
    // Do not use then() with catch(), because if the callback throws, it must not be called again.
    evaluated.then(
      ({ addresses, first }) => {
        if (options.all === true) callback(null, [...addresses]);
        else callback(null, first.address, first.family);
      },
      (error: NodeJS.ErrnoException) => callback(error, "", 0),
    );
  };
}

/** Throw AddressRefusedError for a forbidden address. */
export function checkAddress(address: string, allowed: readonly Network[], hostname = address): void {
  const evaluation = evaluateAddress(address, allowed);
  if (evaluation.ok) return;
  const leads = hostname === address ? address : `${hostname} resolves to ${address}, which`;
  throw new AddressRefusedError(`${leads} is ${evaluation.kind} and not in Webhooks.AllowedNetworks`);
}
