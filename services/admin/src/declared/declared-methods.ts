import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import type { ConnectRouter, HandlerContext, MethodImpl } from "@connectrpc/connect";
import {
  type ApplyStateResponse,
  ApplyStateResponseSchema,
  DeclaredStateService,
  PlanStateResponseSchema,
  StateAction,
  type StateChange,
  StateChangeSchema,
} from "@rollcall/api/rollcall/admin/v1/declared_state_pb";
import { type DeclaredAction, type DeclaredStep, isDeclaredChange } from "@rollcall/domain";
import { actorOf } from "@rollcall/identity";
import { type AnswerCodec, bearerIn, commit, type Operation, readOperation } from "@rollcall/operations";
import { callerOf, definePolicies, type PolicyTable } from "@rollcall/rpc";
import type { Tx } from "@rollcall/store";
import { secretAgain } from "../webhooks/set-webhook.ts";
import type { WebhookServices } from "../webhooks/webhook-services.ts";
import { type Applying, type CarriedOut, carryOut, type MadeSecret } from "./apply-objects.ts";
import { type CheckedState, checkState, type RoleHolder, type StatePlan, type StateRequest } from "./plan-objects.ts";

/** Who may do what is checked object by object: what operators and submitters may both is to read. */
export const DECLARED_STATE_POLICIES: PolicyTable = definePolicies(DeclaredStateService, {
  planState: { caller: "viewer", deadlineMs: 60_000, idempotent: true },
  // Every node of the fleet is looked at for each policy that changes.
  applyState: { caller: "viewer", deadlineMs: 60_000, idempotent: false },
});

/** Serve declared state: one line a method. */
export function routeDeclaredState(router: ConnectRouter, services: WebhookServices): void {
  router.service(DeclaredStateService, {
    planState: planMethod(services),
    applyState: applyMethod(services),
  });
}

/** Tell what would happen to objects: the work of applying them, which is undone. */
function planMethod(services: WebhookServices): MethodImpl<typeof DeclaredStateService.method.planState> {
  const method = DeclaredStateService.method.planState;
  return async (request, context) => {
    const operation = readOperation(services, method, { reason: "", requestId: "" }, context);
    const applying = applyingOf(services, operation, request, context);
    const { steps, more } = await undone(services, (tx) => carryOut(tx, applying, true));
    const changes = changesToProto(steps, applying.state);
    return create(PlanStateResponseSchema, { changes, more });
  };
}

/** Do work in a transaction that is rolled back; the plan by which it was done. */
async function undone(
  { store }: Pick<WebhookServices, "store">,
  work: (tx: Tx) => Promise<CarriedOut>,
): Promise<StatePlan> {
  let plan: StatePlan | null = null;
  const end = new Error("planned");
  await store
    .transaction(async (tx) => {
      plan = (await work(tx)).plan;
      throw end;
    })
    .catch((error: unknown) => {
      if (error !== end) throw error;
    });
  if (plan === null) throw new Error("nothing was planned");
  return plan;
}

/** What happened to objects. */
interface Applied {
  /** Without secrets. */
  readonly answer: ApplyStateResponse;
  readonly secrets: readonly MadeSecret[];
}

/** Make objects as they are declared. */
function applyMethod(services: WebhookServices): MethodImpl<typeof DeclaredStateService.method.applyState> {
  const method = DeclaredStateService.method.applyState;
  return async (request, context) => {
    const operation = readOperation(services, method, request, context);
    const applying = applyingOf(services, operation, request, context);
    const options = { codec: codecFor(services, applying.bearer) };
    const { answer, secrets } = await commit<Applied>(services, operation, options, async (tx) => {
      const { plan, change } = await carryOut(tx, applying, false);
      const { result, ...rest } = change;
      const changes = changesToProto(plan.steps, applying.state);
      const done = create(ApplyStateResponseSchema, { changes, more: plan.more });
      return { ...rest, result: { answer: done, secrets: result } };
    });
    const shown = secrets.filter(({ secret }) => secret !== "").map(({ webhook, secret }) => ({ webhook, secret }));
    return create(ApplyStateResponseSchema, { changes: answer.changes, more: answer.more, secrets: shown });
  };
}

function applyingOf(
  services: WebhookServices,
  operation: Operation,
  request: StateRequest,
  context: HandlerContext,
): Applying {
  const caller = roleOf(context);
  const state = checkState(request, services.webhooks, caller);
  return { services, operation, state, caller, bearer: bearerIn(context), signal: context.signal };
}

/** What is remembered of an answer: never a secret, but what it is made from together with the caller's token. */
function codecFor({ webhooks }: WebhookServices, bearer: string): AnswerCodec<Applied> {
  return {
    encode: ({ answer, secrets }) => {
      const salts = secrets.map(({ webhook, salt }) => [webhook, Buffer.from(salt).toString("base64")]);
      const kept = Buffer.from(toBinary(ApplyStateResponseSchema, answer)).toString("base64");
      return Buffer.from(JSON.stringify({ answer: kept, salts }));
    },
    decode: async (bytes, tx) => {
      // Written by encode() above.
      const kept = JSON.parse(Buffer.from(bytes).toString()) as KeptAnswer;
      const secrets: MadeSecret[] = [];
      for (const [webhook, text] of kept.salts) {
        const salt = Buffer.from(text, "base64");
        secrets.push({ webhook, salt, secret: await secretAgain(tx, { webhooks, name: webhook, bearer, salt }) });
      }
      return { answer: fromBinary(ApplyStateResponseSchema, Buffer.from(kept.answer, "base64")), secrets };
    },
  };
}

interface KeptAnswer {
  readonly answer: string;
  readonly salts: readonly (readonly [string, string])[];
}

/** Who calls: the method's policy refuses callers without a role. */
function roleOf(context: Pick<HandlerContext, "values">): RoleHolder {
  const caller = callerOf(context);
  if (!("role" in caller)) throw new Error("a caller without a role got here");
  return { role: caller.role, actor: actorOf(caller) };
}

/** Bytes of changes in one answer whose differences are told: clients take 16 MiB. */
const MOST_CHANGE_BYTES = 8 * 1_048_576;

/** All changes; the differences of those that come first, as far as an answer has room for them. */
function changesToProto(steps: readonly DeclaredStep[], state: CheckedState): StateChange[] {
  let leftBytes = MOST_CHANGE_BYTES;
  return steps.map((step) => {
    const change = changeToProto(step, state);
    leftBytes -= toBinary(StateChangeSchema, change).length;
    return leftBytes < 0 ? { ...change, differences: [] } : change;
  });
}

const ACTIONS: Readonly<Record<DeclaredAction, StateAction>> = {
  unchanged: StateAction.UNCHANGED,
  create: StateAction.CREATE,
  update: StateAction.UPDATE,
  adopt: StateAction.ADOPT,
  prune: StateAction.PRUNE,
  forget: StateAction.FORGET,
  conflict: StateAction.CONFLICT,
};

function changeToProto(step: DeclaredStep, { objects }: CheckedState): StateChange {
  const { name, action, differences, formerOwner } = step;
  const wanted = objects.get(name)?.wanted;
  return create(StateChangeSchema, {
    object: name,
    action: ACTIONS[action],
    differences: differences.map(({ field, before, after, isEdited }) => ({
      ...{ field, before: before ?? "", after: after ?? "", edited: isEdited },
    })),
    formerOwner,
    warnings: wanted?.kind === "job" && isDeclaredChange(step) ? [...wanted.job.warnings] : [],
  });
}
