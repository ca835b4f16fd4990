import type { DescService } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient, type Interceptor, type Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import { AccessService } from "@rollcall/api/rollcall/admin/v1/access_pb";
import { EventService } from "@rollcall/api/rollcall/events/v1/events_pb";
import { RegistryService } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { MIN_REVISION_HEADER, REVISION_HEADER, seenAfter } from "@rollcall/domain/seen-revision";
import { PROOF_HEADER, readProof } from "../session/proof.ts";

const proving: Interceptor = (next) => (request) => {
  const proof = readProof();
  if (proof !== null) request.header.set(PROOF_HEADER, proof);
  return next(request);
};

let seen = 0n;

/**
 * Send the newest revision that the page has seen, so that no service answers from an older state. Watches
 * need no revision, because they start from the database's state.
 */
const remembering: Interceptor = (next) => async (request) => {
  if (seen > 0n && !request.stream) request.header.set(MIN_REVISION_HEADER, String(seen));
  try {
    const answer = await next(request);
    seen = seenAfter(seen, answer.header.get(REVISION_HEADER));
    return answer;
  } catch (error) {
    // Send no revision with the next call, because after a restore from a backup, the event log may end before
    // the revision that the page has seen.
    if (error instanceof ConnectError && error.code === Code.OutOfRange) seen = 0n;
    throw error;
  }
};

/** All calls go to the page's origin, with the cookie and its matching proof. */
const transport: Transport = createConnectTransport({
  baseUrl: window.location.origin,
  useBinaryFormat: true,
  interceptors: [proving, remembering],
});

/** Create a client for a service that only some pages need. */
export function clientOf<S extends DescService>(service: S) {
  return createClient(service, transport);
}

/** Clients that every page needs. */
export const access = clientOf(AccessService);
export const registry = clientOf(RegistryService);
export const events = clientOf(EventService);
