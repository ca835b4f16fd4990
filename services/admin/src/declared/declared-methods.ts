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
import type { DeclaredAction, DeclaredStep } from "@rollcall/domain";
import { type AnswerCodec, bearerIn, commit, readOperation } from "@rollcall/operations";
import { callerOf, definePolicies, type PolicyTable } from "@rollcall/rpc";
import { lockDeclaredState } from "@rollcall/store";
import { secretAgain } from "../webhooks/set-webhook.ts";
import type { WebhookServices } from "../webhooks/webhook-services.ts";
import { applyPlan, type MadeSecret } from "./apply-objects.ts";
import { lockObjects } from "./existing-objects.ts";
import { checkState, planState, type RoleHolder } from "./plan-objects.ts";

/** Who may call each method, for how long; what an object takes beyond this role is checked object by object. */
export const DECLARED_STATE_POLICIES: PolicyTable = definePolicies(DeclaredStateService, {
  planState: { caller: "operator", deadlineMs: 60_000, idempotent: true },
  // Every node of the fleet is looked at for each policy that changes.
  applyState: { caller: "operator", deadlineMs: 60_000, idempotent: false },
});

/** Serve declared state: one line a method. */
export function routeDeclaredState(router: ConnectRouter, services: WebhookServices): void {
  router.service(DeclaredStateService, {
    planState: planMethod(services),
    applyState: applyMethod(services),
  });
}

/** Tell what would become of objects. */
function planMethod({ store, webhooks }: WebhookServices): MethodImpl<typeof DeclaredStateService.method.planState> {
  return async (request, context) => {
    const caller = roleOf(context);
    const state = checkState(request, webhooks, caller);
    const { steps } = await planState(store.db, state, caller);
    return create(PlanStateResponseSchema, { changes: steps.map(changeToProto) });
  };
}

/** What became of objects. */
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
    const caller = roleOf(context);
    const bearer = bearerIn(context);
    const state = checkState(request, services.webhooks, caller);
    const options = { codec: codecFor(services, bearer) };
    const { answer, secrets } = await commit<Applied>(services, operation, options, async (tx) => {
      await lockDeclaredState(tx);
      const plan = await planState(tx, state, caller, (refs) => lockObjects(tx, refs));
      const { result, ...rest } = await applyPlan(tx, { services, operation, state, bearer }, plan);
      const changes = plan.steps.map(changeToProto);
      return { ...rest, result: { answer: create(ApplyStateResponseSchema, { changes }), secrets: result } };
    });
    const shown = secrets.filter(({ secret }) => secret !== "").map(({ webhook, secret }) => ({ webhook, secret }));
    return create(ApplyStateResponseSchema, { changes: answer.changes, secrets: shown });
  };
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

/** Who calls: the method's policy lets nobody through who has no role. */
function roleOf(context: Pick<HandlerContext, "values">): RoleHolder {
  const caller = callerOf(context);
  if (!("role" in caller)) throw new Error("a caller without a role got here");
  return caller;
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

function changeToProto({ name, action, differences, formerOwner }: DeclaredStep): StateChange {
  return create(StateChangeSchema, {
    object: name,
    action: ACTIONS[action],
    differences: differences.map(({ field, before, after, isEdited }) => ({
      ...{ field, before: before ?? "", after: after ?? "", edited: isEdited },
    })),
    formerOwner,
  });
}
