import { create, toJsonString } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { ConnectRouter, HandlerContext } from "@connectrpc/connect";
import {
  DeleteHealthPolicyRequestSchema,
  EffectiveHealthPolicySchema,
  type HealthPolicy,
  HealthPolicySchema,
  HealthPolicyService,
  HealthPolicySourceKind,
  type HealthPolicyValues,
  HealthPolicyValuesSchema,
  PreviewHealthPolicyRequestSchema,
  SetHealthPolicyRequestSchema,
} from "@rollcall/api/rollcall/admin/v1/health_policy_pb";

const CONFIGURED = create(HealthPolicyValuesSchema, {
  unhealthyAfter: durationFromMs(60_000),
  unhealthyAfterMissed: 0,
  unknownAfter: durationFromMs(300_000),
  heartbeatInterval: durationFromMs(15_000),
});

/** The health policies of a fake control plane: it notes what it is asked, and answers what was put in. */
export class FakePolicies {
  readonly policies: HealthPolicy[] = [];
  /** How many nodes each change changes. */
  changedNodes = 0;

  clear(): void {
    this.policies.length = 0;
    this.changedNodes = 0;
  }

  /** Serve them; `enter` notes and authorizes each call. */
  route(router: ConnectRouter, enter: (method: string, detail: string, context: HandlerContext) => void): void {
    router.service(HealthPolicyService, {
      setHealthPolicy: (request, context) => {
        enter("SetHealthPolicy", toJsonString(SetHealthPolicyRequestSchema, request), context);
        const { scope, selector, priority, values } = request;
        const policy = create(HealthPolicySchema, { selector, priority });
        if (scope !== undefined) policy.scope = scope;
        if (values !== undefined) policy.values = values;
        return { policy, changedNodes: this.changedNodes };
      },
      deleteHealthPolicy: (request, context) => {
        const asked = toJsonString(DeleteHealthPolicyRequestSchema, request);
        enter("DeleteHealthPolicy", asked, context);
        return { changedNodes: this.changedNodes };
      },
      getHealthPolicy: (_request, context) => {
        enter("GetHealthPolicy", "", context);
        const [policy] = this.policies;
        return { ...(policy === undefined ? {} : { policy }), effective: effective(policy) };
      },
      listHealthPolicies: ({ pageToken }, context) => {
        enter("ListHealthPolicies", pageToken, context);
        // Pages of one, so that whoever stops at the first is found out.
        const at = Number(pageToken);
        const nextPageToken = at + 1 < this.policies.length ? `${at + 1}` : "";
        return {
          policies: this.policies.slice(at, at + 1),
          nextPageToken,
          configuration: CONFIGURED,
        };
      },
      previewHealthPolicy: (request, context) => {
        const asked = toJsonString(PreviewHealthPolicyRequestSchema, request);
        enter("PreviewHealthPolicy", asked, context);
        const values = request.change.case === "set" ? request.change.value.values : undefined;
        const node = { before: effective(undefined), after: effective({ values }) };
        const at = Number(request.pageToken);
        const end = Math.min(this.changedNodes, at + request.pageSize);
        return {
          nodes: Array.from({ length: end - at }, (_, index) => ({
            ...node,
            nodeId: `n${at + index}`,
          })),
          nextPageToken: end < this.changedNodes ? `${end}` : "",
          changedNodes: this.changedNodes,
        };
      },
    });
  }
}

function effective(policy: { readonly values?: HealthPolicyValues | undefined } | undefined) {
  const set = Object.fromEntries(Object.entries(policy?.values ?? {}).filter(([, value]) => value !== undefined));
  const values = create(HealthPolicyValuesSchema, { ...CONFIGURED, ...set });
  return create(EffectiveHealthPolicySchema, {
    values,
    sources: [
      {
        value: "unhealthy_after",
        kind: "unhealthyAfter" in set ? HealthPolicySourceKind.GROUP : HealthPolicySourceKind.CONFIGURATION,
        group: "unhealthyAfter" in set ? "gpus" : "",
      },
    ],
    unhealthyAfter: values.unhealthyAfter ?? durationFromMs(60_000),
    heartbeatInterval: values.heartbeatInterval ?? durationFromMs(15_000),
  });
}
