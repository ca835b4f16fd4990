import type { DescService } from "@bufbuild/protobuf";
import { createClient, type Interceptor, type Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import { AccessService } from "@rollcall/api/rollcall/admin/v1/access_pb";
import { EventService } from "@rollcall/api/rollcall/events/v1/events_pb";
import { RegistryService } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { PROOF_HEADER, readProof } from "../session/proof.ts";

const proving: Interceptor = (next) => (request) => {
  const proof = readProof();
  if (proof !== null) request.header.set(PROOF_HEADER, proof);
  return next(request);
};

/** All calls go to the origin of the page, with its cookie and the proof that belongs to it. */
const transport: Transport = createConnectTransport({
  baseUrl: window.location.origin,
  useBinaryFormat: true,
  interceptors: [proving],
});

/** Make the client of a service that only some pages need. */
export function clientOf<S extends DescService>(service: S) {
  return createClient(service, transport);
}

/** Clients that every page needs. */
export const access = clientOf(AccessService);
export const registry = clientOf(RegistryService);
export const events = clientOf(EventService);
