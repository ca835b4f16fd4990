import {
  type HealthPolicy,
  HealthPolicyService,
  type HealthPolicyValues,
  type PreviewHealthPolicyResponse,
} from "@rollcall/api/rollcall/admin/v1/health_policy_pb";
import { POLICY_FIELDS } from "@rollcall/domain/policy-fields";
import { type FormEvent, useState } from "react";
import { NodeLink } from "../../app/link.tsx";
import { clientOf } from "../../live/clients.ts";
import { command } from "../../state/cli-command.ts";
import {
  inheritedText,
  policyFieldWords,
  policyUnit,
  policyValueFlaw,
  policyValueText,
  scopeText,
  scopeWords,
  toPolicyValues,
  toScope,
} from "../../state/policy-values.ts";
import { formatCount } from "../../state/units.ts";
import { Button } from "../../ui/button.tsx";
import { CopyCommand } from "../../ui/copy.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { Choice, Field } from "../../ui/field.tsx";
import { Notice } from "../../ui/notices.tsx";
import { Panel } from "../../ui/panel.tsx";
import { say, useAct } from "../../ui/toasts.tsx";

const policies = clientOf(HealthPolicyService);
const FIELDS = Object.values(POLICY_FIELDS);

/** Sets one policy, after a preview of the nodes it would change. */
export function PolicyForm({
  policy,
  policies: all,
  configuration,
  onDone,
}: {
  readonly policy: HealthPolicy | null;
  /** All policies and the configuration, from which the policy inherits what it does not set. */
  readonly policies: readonly HealthPolicy[];
  readonly configuration: HealthPolicyValues | undefined;
  readonly onDone: () => void;
}) {
  const scope = policy?.scope?.scope;
  const [kind, setKind] = useState<string>(scope?.case ?? "default");
  const [name, setName] = useState(typeof scope?.value === "string" ? scope.value : "");
  const [selector, setSelector] = useState(policy?.selector ?? "");
  const [priority, setPriority] = useState(String(policy?.priority ?? 0));
  const [reason, setReason] = useState("");
  const [texts, setTexts] = useState<Readonly<Record<string, string>>>(() =>
    Object.fromEntries(FIELDS.map((field) => [field.name, policyValueText(policy?.values, field.name)])),
  );
  const [preview, setPreview] = useState<{ readonly of: string; readonly answer: PreviewHealthPolicyResponse } | null>(
    null,
  );
  const { busy, act } = useAct();
  const flawed = FIELDS.some((field) => policyValueFlaw(field.kind, texts[field.name] ?? "") !== null);
  const isEmpty = FIELDS.every((field) => (texts[field.name] ?? "") === "");
  const isReady = !flawed && !isEmpty && (kind === "default" || name !== "") && /^-?[0-9]{1,7}$/.test(priority);
  const request = () => ({
    scope: toScope(kind, name),
    selector: kind === "group" ? selector : "",
    priority: kind === "group" ? Number(priority) : 0,
    values: toPolicyValues(texts),
    reason,
    etag: policy?.etag ?? "",
  });
  // Compare the values, because a preview is valid only for the values that were used for it.
  const wished = JSON.stringify([kind, name, selector, priority, reason, texts]);
  const look = () =>
    act("Preview", async () => {
      const answer = await policies.previewHealthPolicy({ change: { case: "set", value: request() }, pageSize: 50 });
      setPreview({ of: wished, answer });
    });
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    await act("Set the policy", async () => {
      const { changedNodes } = await policies.setHealthPolicy({ ...request(), requestId: crypto.randomUUID() });
      say("good", `The policy is set; ${formatCount(changedNodes)} nodes now have a different policy`);
      onDone();
    });
  };
  const flags = FIELDS.flatMap((field) => {
    const text = texts[field.name] ?? "";
    return text === "" ? [] : [`--${field.name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`, text];
  });
  const words = [
    ...(policy === null ? scopeWordsOf(kind, name) : scopeWords(policy.scope)),
    ...(kind === "group" && selector !== "" ? ["--selector", selector] : []),
    ...(kind === "group" && priority !== "0" ? ["--priority", priority] : []),
    ...flags,
  ];
  return (
    <Panel
      title={policy === null ? "Set a policy" : `Change the policy for ${scopeText(policy.scope)}`}
      actions={<Button onClick={onDone}>Close</Button>}
    >
      <form className="stack" onSubmit={submit}>
        {policy === null && (
          <div className="grid">
            <Choice
              label="For"
              value={kind}
              onChange={setKind}
              options={[
                ["default", "Every node"],
                ["group", "A group of nodes, by selector"],
                ["node", "One node"],
              ]}
            />
            {kind !== "default" && (
              <Field
                label={kind === "group" ? "Name of the group" : "Node"}
                value={name}
                onChange={(event) => setName(event.target.value.trim())}
              />
            )}
          </div>
        )}
        {kind === "group" && (
          <div className="grid">
            <Field
              label="Selector"
              hint="Matches only labels set by join tokens and operators"
              value={selector}
              onChange={(event) => setSelector(event.target.value)}
            />
            <Field
              label="Priority"
              hint="The highest priority wins"
              value={priority}
              onChange={(event) => setPriority(event.target.value.trim())}
            />
          </div>
        )}
        <div className="grid">
          {FIELDS.map((field) => (
            <Field
              key={field.name}
              label={policyFieldWords(field.name)}
              hint={`${field.doc} (${policyUnit(field.kind)})`}
              placeholder={inheritedText(field.name, { kind, name }, { policies: all, configuration })}
              wrong={policyValueFlaw(field.kind, texts[field.name] ?? "") ?? undefined}
              value={texts[field.name] ?? ""}
              onChange={(event) => setTexts({ ...texts, [field.name]: event.target.value.trim() })}
            />
          ))}
        </div>
        <Field
          label="Reason (optional)"
          maxLength={1024}
          value={reason}
          onChange={(event) => setReason(event.target.value)}
        />
        {preview?.of === wished && <Preview preview={preview.answer} />}
        <CopyCommand text={command("policy", "set", ...words)} label="Command line" />
        <div className="row">
          <Button disabled={!isReady || busy} onClick={look}>
            Preview
          </Button>
          <Button look="primary" type="submit" disabled={!isReady || busy}>
            Set the policy
          </Button>
        </div>
      </form>
    </Panel>
  );
}

function scopeWordsOf(kind: string, name: string): readonly string[] {
  return kind === "default" ? ["--default"] : [`--${kind}`, name];
}

function Preview({ preview: { nodes, changedNodes } }: { readonly preview: PreviewHealthPolicyResponse }) {
  return (
    <div className="stack tight">
      <Notice tone={changedNodes === 0 ? "good" : "warn"}>
        {formatCount(changedNodes)} nodes would have a different policy
      </Notice>
      {nodes.length > 0 && (
        <DataTable
          label="Nodes that would change"
          rows={nodes}
          keyOf={({ nodeId }) => nodeId}
          columns={[
            { title: "Node", cell: ({ nodeId }) => <NodeLink id={nodeId} /> },
            {
              title: "What would change",
              cell: ({ before, after }) =>
                FIELDS.flatMap(({ name }) => {
                  const [was, is] = [policyValueText(before?.values, name), policyValueText(after?.values, name)];
                  return was === is ? [] : [`${policyFieldWords(name)} ${was || "-"} -> ${is || "-"}`];
                }).join(", "),
            },
          ]}
        />
      )}
    </div>
  );
}
