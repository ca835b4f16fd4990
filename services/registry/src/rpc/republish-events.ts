import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import {
  EventService,
  type RepublishEventsRequest,
  type RepublishEventsResponse,
  RepublishEventsResponseSchema,
} from "@rollcall/api/rollcall/events/v1/events_pb";
import { auditedCall, requestDigest } from "@rollcall/rpc";
import {
  AUDIT_OK,
  compactedRevision,
  firstAnswer,
  type RequestKey,
  rewindRelay,
  saveAnswer,
  type Tx,
} from "@rollcall/store";
import type { RegistryServices } from "../registry-services.ts";
import { revisionCompacted } from "../watch/resume-token.ts";

/** The target of the call in the audit log. */
const RELAY = "event relay";
const MAX_REVISION = 2n ** 63n - 1n;

/** Move the relay's cursor back. The registry that relays events notices the change. */
export function republishEvents({
  store,
  log,
}: Pick<RegistryServices, "store" | "log">): MethodImpl<typeof EventService.method.republishEvents> {
  return async (request, context) => {
    const call = auditedCall(context, EventService.method.republishEvents);
    const { actor } = call;
    const key = requestKeyOf(request, actor);
    const { result: answer } = await store.change(async (tx) => {
      const first = key === null ? null : await firstAnswer(tx, key);
      if (first !== null) {
        return { result: fromBinary(RepublishEventsResponseSchema, first), events: [] };
      }
      const rewound = await rewind(tx, request.fromRevision);
      if (key !== null) {
        await saveAnswer(tx, key, toBinary(RepublishEventsResponseSchema, rewound));
      }
      const audit = [{ ...call, target: RELAY, reason: "", outcome: AUDIT_OK }];
      return { result: rewound, events: [], audit };
    });
    const { fromRevision: from, throughRevision: through } = answer;
    if (from <= through) {
      log.info({ actor, from: `${from}`, through: `${through}` }, "relaying events again");
    }
    return answer;
  };
}

async function rewind(tx: Tx, from: bigint): Promise<RepublishEventsResponse> {
  const compacted = await compactedRevision(tx);
  if (from !== 0n && from <= compacted) throw revisionCompacted(compacted, "compacted");
  const target = from === 0n ? compacted : from - 1n;
  const { before, after } = await rewindRelay(tx, target < MAX_REVISION ? target : MAX_REVISION);
  return create(RepublishEventsResponseSchema, {
    fromRevision: after + 1n,
    throughRevision: before,
  });
}

function requestKeyOf(request: RepublishEventsRequest, caller: string): RequestKey | null {
  const { requestId } = request;
  if (requestId === "") return null;
  const { typeName, method } = EventService;
  const { name, input } = method.republishEvents;
  return { requestId, caller, method: `/${typeName}/${name}`, digest: requestDigest(input, request) };
}
