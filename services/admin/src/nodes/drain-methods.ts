import { create, equals } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { MethodImpl } from "@connectrpc/connect";
import {
  type AdminService,
  type Drain,
  DrainSchema,
  DrainState,
  GetDrainResponseSchema,
  WatchDrainResponseSchema,
} from "@rollcall/api/rollcall/admin/v1/admin_pb";
import { drainWaitText } from "@rollcall/domain";
import { refuse } from "@rollcall/errors";
import {
  type Db,
  type DrainRow,
  type DrainWork,
  findNode,
  getDrain,
  readDrainWork,
  storeTimeMs,
} from "@rollcall/store";
import type { AdminServices } from "../admin-services.ts";

/** Maximum number of executions that a response names. */
const MOST_NAMED = 1_000;
/**
 * Poll interval of a watch, in milliseconds. A watch has to poll, because executions start and end without events.
 */
const SCAN_EVERY_MS = 1_000;
/** Time after which a watch without changes repeats its message, to show that it is alive. */
const REPEAT_AFTER_MS = 15_000;

/** The methods that read and watch a drain. */
export function drainMethods({ store, clock }: AdminServices): {
  readonly getDrain: MethodImpl<typeof AdminService.method.getDrain>;
  readonly watchDrain: MethodImpl<typeof AdminService.method.watchDrain>;
} {
  return {
    getDrain: async ({ node }) => create(GetDrainResponseSchema, { drain: await mustRead(store.db, node) }),
    watchDrain: async function* ({ node }, { signal }) {
      let shown = await mustRead(store.db, node);
      const { nodeId } = shown;
      let toldAtMs = clock.nowMs();
      yield create(WatchDrainResponseSchema, { drain: shown });
      while (shown.state !== DrainState.DRAINED && shown.state !== DrainState.UNCONFIRMED) {
        await clock.sleep(SCAN_EVERY_MS, signal);
        const drain = await readDrain(store.db, nodeId);
        if (drain === null) {
          const cancelled = create(DrainSchema, {
            ...shown,
            state: DrainState.CANCELLED,
            waitingFor: [],
            waitingCount: 0,
          });
          yield create(WatchDrainResponseSchema, { drain: cancelled });
          return;
        }
        if (isSame(shown, drain) && clock.nowMs() - toldAtMs < REPEAT_AFTER_MS) continue;
        shown = drain;
        toldAtMs = clock.nowMs();
        yield create(WatchDrainResponseSchema, { drain });
      }
    },
  };
}

/** Read a drain. Throws NODE_NOT_FOUND or NODE_NOT_DRAINING. */
async function mustRead(db: Db, node: string): Promise<Drain> {
  const { id } = await findNode(db, node);
  const drain = await readDrain(db, id);
  if (drain !== null) return drain;
  throw refuse("NODE_NOT_DRAINING", `node ${id} is not draining`, { metadata: { node: id } });
}

async function readDrain(db: Db, nodeId: string): Promise<Drain | null> {
  const drain = await getDrain(db, nodeId);
  if (drain === null) return null;
  const isOver = drain.drainedAtMs !== null;
  const nothing: DrainWork = { executions: [], count: 0 };
  const [work, nowMs] = await Promise.all([isOver ? nothing : readDrainWork(db, drain, MOST_NAMED), storeTimeMs(db)]);
  return drainToProto(drain, work, nowMs);
}

function drainToProto(drain: DrainRow, { executions, count }: DrainWork, nowMs: number): Drain {
  const { nodeId, deadlineAtMs, force, ignoreDaemons, keepIneligible, reason, actor } = drain;
  return create(DrainSchema, {
    ...{ nodeId, force, ignoreDaemons, keepIneligible, reason, actor },
    state: stateOf(drain),
    startTime: timestampFromMs(drain.startedAtMs),
    ...(deadlineAtMs === null
      ? {}
      : {
          deadline: timestampFromMs(deadlineAtMs),
          remaining: durationFromMs(Math.max(0, deadlineAtMs - nowMs)),
        }),
    waitingFor: executions.map((execution) => ({
      executionId: execution.id,
      job: execution.job,
      waitingFor: drainWaitText(execution, drain),
    })),
    waitingCount: count,
  });
}

function stateOf({ queued, drainedAtMs, unconfirmed }: DrainRow): DrainState {
  if (drainedAtMs !== null) return unconfirmed ? DrainState.UNCONFIRMED : DrainState.DRAINED;
  return queued ? DrainState.QUEUED : DrainState.DRAINING;
}

/** Whether two drains differ only in the remaining time. */
function isSame(left: Drain, right: Drain): boolean {
  return equals(DrainSchema, withoutTime(left), withoutTime(right));
}

function withoutTime({ remaining: _remaining, ...drain }: Drain): Drain {
  return drain;
}
