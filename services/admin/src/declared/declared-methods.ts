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
import { type AnswerCodec, commit, type Operation, readOperation, rehearse } from "@rollcall/operations";
import { bearerIn, callerOf, definePolicies, type PolicyTable } from "@rollcall/rpc";
import { secretAgain } from "../webhooks/set-webhook.ts";
import type { WebhookServices } from "../webhooks/webhook-services.ts";
import { type Applying, carryOut, type MadeSecret } from "./apply-objects.ts";
import { type CheckedState, checkState, type RoleHolder, type StateRequest } from "./plan-objects.ts";

/**
 * Who can call each method. The methods themselves require only the role viewer, because the right to change is checked
 * for each object.
 */
export const DECLARED_STATE_POLICIES: PolicyTable = definePolicies(DeclaredStateService, {
  planState: { caller: "viewer", deadlineMs: 60_000, idempotent: true },
  // Set a long deadline, because each changed policy is evaluated for every node of the fleet.
  applyState: { caller: "viewer", deadlineMs: 60_000, idempotent: false },
});

/** Register the methods of declared state. */
export function routeDeclaredState(router: ConnectRouter, services: WebhookServices): void {
  router.service(DeclaredStateService, {
    planState: planMethod(services),
    applyState: applyMethod(services),
  });
}

/** Return what applying the objects would change, by applying them in a transaction that is rolled back. */
function planMethod(services: WebhookServices): MethodImpl<typeof DeclaredStateService.method.planState> {
  const method = DeclaredStateService.method.planState;
  return async (request, context) => {
    const operation = readOperation(services, method, request, context);
    const applying = applyingOf(services, operation, request, context);
    const { plan } = await rehearse(services, (tx) => carryOut(tx, applying, true));
    const { steps, more } = plan;
    const changes = changesToProto(steps, applying.state);
    return create(PlanStateResponseSchema, { changes, more });
  };
}

/** The result for each object. */
interface Applied {
  /** The response without secrets. */
  readonly answer: ApplyStateResponse;
  readonly secrets: readonly MadeSecret[];
}

/** Make objects match their declarations. */
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

/**
 * How a response is stored: without secrets, but with their salts. A salt and the caller's token yield the secret
 * again.
 */
function codecFor({ webhooks }: WebhookServices, bearer: string): AnswerCodec<Applied> {
  return {
    encode: ({ answer, secrets }) => {
      const salts = secrets.map(({ webhook, salt }) => [webhook, Buffer.from(salt).toString("base64")]);
      const kept = Buffer.from(toBinary(ApplyStateResponseSchema, answer)).toString("base64");
      return Buffer.from(JSON.stringify({ answer: kept, salts }));
    },
    decode: async (bytes, tx) => {
      // The cast is safe, because encode() wrote these bytes.
      const kept = JSON.parse(Buffer.from(bytes).toString()) as SavedAnswer;
      const secrets: MadeSecret[] = [];
      for (const [webhook, text] of kept.salts) {
        const salt = Buffer.from(text, "base64");
        secrets.push({ webhook, salt, secret: await secretAgain(tx, { webhooks, name: webhook, bearer, salt }) });
      }
      return { answer: fromBinary(ApplyStateResponseSchema, Buffer.from(kept.answer, "base64")), secrets };
    },
  };
}

interface SavedAnswer {
  readonly answer: string;
  readonly salts: readonly (readonly [string, string])[];
}

/** The caller's role. The method's policy has refused callers without a role. */
function roleOf(context: Pick<HandlerContext, "values">): RoleHolder {
  const caller = callerOf(context);
  if (!("role" in caller)) throw new Error("a caller without a role got here");
  return { role: caller.role, actor: actorOf(caller) };
}

/**
 * Maximum size in bytes of the changes with their differences in one response. Clients accept messages of 16 MiB.
 */
const MOST_CHANGE_BYTES = 8 * 1_048_576;

/** Convert all changes. Once they reach MOST_CHANGE_BYTES, further differences are omitted. */
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
  start: StateAction.START,
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
