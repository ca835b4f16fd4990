import { type LookupAddress, lookup as systemLookup } from "node:dns";
import type { LookupFunction } from "node:net";
import { judgeAddress, type Network } from "@rollcall/domain";
import { Limiter } from "@rollcall/rpc";

/** Why no connection was made: the name leads where events may not be posted to. */
export class AddressRefusedError extends Error {
  override readonly name = "AddressRefusedError";
}

/** Finds all addresses of a name, as the system does. */
export type Resolve = (hostname: string) => Promise<readonly LookupAddress[]>;

/** Addresses of a name, by the system's own means: its hosts file, its DNS. */
export const systemResolve: Resolve = (hostname) =>
  new Promise((resolve, reject) => {
    systemLookup(hostname, { all: true, verbatim: true }, (error, addresses) => {
      if (error === null) resolve(addresses);
      else reject(error);
    });
  });

/** Names looked up at a time: each holds a thread of the few that files and keys need too. */
const NAMES_AT_A_TIME = 2;

/** Looks a name up once for all who ask meanwhile, and few names at a time: the others wait for their turn. */
export function boundedResolve(resolve: Resolve): Resolve {
  const limiter = new Limiter(NAMES_AT_A_TIME);
  const underWay = new Map<string, Promise<readonly LookupAddress[]>>();
  const find = async (hostname: string) => {
    // Who asks goes away when its time is over; one waits here for all who ask for this name.
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
 * A look-up for sockets that answers only addresses which may be connected to. One address that may not be refuses the
 * name: what is checked is what is connected to, so that a name whose addresses change in between gains nothing.
 */
export function guardedLookup(resolve: Resolve, allowed: readonly Network[]): LookupFunction {
  return (hostname, options, callback) => {
    const judged = resolve(hostname).then((addresses) => {
      const [first] = addresses;
      if (first === undefined) throw new AddressRefusedError(`${hostname} has no address`);
      for (const { address } of addresses) checkAddress(address, allowed, hostname);
      return { addresses, first };
    });
    // Not catch() after then(): what a callback throws is no reason to call it twice.
    judged.then(
      ({ addresses, first }) => {
        if (options.all === true) callback(null, [...addresses]);
        else callback(null, first.address, first.family);
      },
      (error: NodeJS.ErrnoException) => callback(error, "", 0),
    );
  };
}

/** Throw AddressRefusedError for an address that may not be connected to. */
export function checkAddress(address: string, allowed: readonly Network[], hostname = address): void {
  const judgement = judgeAddress(address, allowed);
  if (judgement.ok) return;
  const leads = hostname === address ? address : `${hostname} leads to ${address}, which`;
  throw new AddressRefusedError(`${leads} is ${judgement.kind}: Webhooks.AllowedNetworks does not have it`);
}
