import { create } from "@bufbuild/protobuf";
import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import {
  AuditCutSchema,
  AuditEntrySchema,
  AuditHeadSchema,
  AuditProblemKind,
  AuditProblemSchema,
  type ListAuditEntriesRequest,
  type AuditCut as ProtoCut,
  type AuditEntry as ProtoEntry,
  type AuditHead as ProtoHead,
  type AuditProblem as ProtoProblem,
} from "@rollcall/api/rollcall/admin/v1/audit_pb";
import type { AuditHead, AuditProblem } from "@rollcall/domain";
import { refuse } from "@rollcall/errors";
import type { AuditCut, AuditEntry, ListAuditOptions } from "@rollcall/store";

/** A parsed ListAuditEntries request. */
export interface AuditListing {
  readonly options: Omit<ListAuditOptions, "beyond">;
  /** Identifies the filter and the order in page tokens. */
  readonly name: string;
}

const DEFAULT_PAGE_SIZE = 100;
/** The largest sequence that the store can hold. */
const LAST_SEQUENCE = 2n ** 63n - 1n;

/** Parse a ListAuditEntries request. Throws INVALID_ORDER_BY and INVALID_REQUEST. */
export function parseAuditListing(request: ListAuditEntriesRequest): AuditListing {
  const { pageSize, actor, method, target, outcome, fromTime, untilTime } = request;
  const texts = { actor, method, target, outcome };
  const newestFirst = isNewestFirst(request.orderBy);
  const afterSequence = boundSequence(request.afterSequence);
  const times = {
    ...(fromTime === undefined ? {} : { fromMs: timestampMs(fromTime) }),
    ...(untilTime === undefined ? {} : { untilMs: timestampMs(untilTime) }),
  };
  const given = Object.entries(texts).filter(([, text]) => text !== "");
  const options = {
    ...Object.fromEntries(given),
    ...times,
    newestFirst,
    afterSequence,
    limit: pageSize === 0 ? DEFAULT_PAGE_SIZE : pageSize,
  };
  const name = JSON.stringify(["audit", texts, times, newestFirst, String(afterSequence)]);
  return { options, name };
}

/** The public message of a row. */
export function auditEntryToProto({ atMs, ...entry }: AuditEntry): ProtoEntry {
  // List a row without a time if messages cannot represent its time, as in a manipulated row.
  return create(AuditEntrySchema, {
    ...entry,
    ...(Number.isFinite(atMs) ? { time: timestampFromMs(atMs) } : {}),
  });
}

/** The public message of a position in the log. */
export function auditHeadToProto({ sequence, hash }: AuditHead): ProtoHead {
  return create(AuditHeadSchema, { sequence, hash });
}

/** The public message of the position where the log begins. */
export function auditCutToProto({ sequence, hash, seal, atMs }: AuditCut): ProtoCut {
  return create(AuditCutSchema, { head: auditHeadToProto({ sequence, hash }), seal, time: timestampFromMs(atMs) });
}

/** A position in the log that a caller names. */
export function parseAuditHead({ sequence, hash }: ProtoHead): AuditHead {
  return { sequence: boundSequence(sequence), hash };
}

/** The public message of a problem. */
export function auditProblemToProto({ sequence, kind, message }: AuditProblem): ProtoProblem {
  return create(AuditProblemSchema, { sequence, kind: AuditProblemKind[kind], message });
}

function boundSequence(sequence: bigint): bigint {
  return sequence > LAST_SEQUENCE ? LAST_SEQUENCE : sequence;
}

function isNewestFirst(orderBy: string): boolean {
  const order = orderBy.trim().replace(/\s+/g, " ");
  if (order === "" || order === "sequence desc") return true;
  if (order === "sequence" || order === "sequence asc") return false;
  const description = `order_by must be "sequence" or "sequence desc", not "${orderBy}"`;
  throw refuse("INVALID_ORDER_BY", description, {
    metadata: { order_by: orderBy },
    violations: [{ field: "order_by", description }],
  });
}
