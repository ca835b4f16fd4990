import { type Webhook, WebhookService } from "@rollcall/api/rollcall/events/v1/webhooks_pb";
import { type FormEvent, useRef, useState } from "react";
import { clientOf } from "../../live/clients.ts";
import { RequestIds } from "../../state/bulk.ts";
import { newNameProblem, resumesWhenSet, webhookCommand } from "../../state/webhook-words.ts";
import { Button } from "../../ui/button.tsx";
import { CopyCommand } from "../../ui/copy.tsx";
import { Check, Field } from "../../ui/field.tsx";
import { Notice } from "../../ui/notices.tsx";
import { Panel } from "../../ui/panel.tsx";
import { say, useAct } from "../../ui/toasts.tsx";

/** Sets one webhook. A new secret is shown once. */
export function WebhookForm({
  webhook,
  names,
  onDone,
  onSet,
}: {
  /** The webhook to change; null for a new one. */
  readonly webhook: Webhook | null;
  /** Names of existing webhooks. A new webhook must have another name. */
  readonly names: readonly string[];
  readonly onDone: () => void;
  readonly onSet: () => unknown;
}) {
  const [name, setName] = useState(webhook?.name ?? "");
  const [url, setUrl] = useState(webhook?.spec?.url ?? "");
  const [types, setTypes] = useState(webhook?.spec?.types.join(", ") ?? "");
  const [selector, setSelector] = useState(webhook?.spec?.labelSelector ?? "");
  const [description, setDescription] = useState(webhook?.spec?.description ?? "");
  const [rotate, setRotate] = useState(false);
  const { busy, act } = useAct();
  const [secret, setSecret] = useState("");
  const requestIds = useRef(new RequestIds());
  const nameWrong = webhook === null ? newNameProblem(name, names) : undefined;
  const urlWrong = url !== "" && !url.startsWith("https://");
  const wanted = types.split(/[\s,]+/).filter((type) => type !== "");
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    const spec = {
      url,
      types: wanted,
      excludeTypes: webhook?.spec?.excludeTypes ?? [],
      labelSelector: selector,
      description,
      paused: webhook?.spec?.paused ?? false,
    };
    const request = { name, spec, rotateSecret: rotate, etag: webhook?.etag ?? "" };
    const requestId = requestIds.current.of(request);
    await act("Set the webhook", async () => {
      const answer = await clientOf(WebhookService).setWebhook({ ...request, requestId });
      requestIds.current.answered();
      onSet();
      if (answer.secret !== "") return setSecret(answer.secret);
      say("good", `Webhook ${name} is set`);
      onDone();
    });
  };
  if (secret !== "") {
    return (
      <Panel title={`Secret of ${name}`} actions={<Button onClick={onDone}>Done</Button>}>
        <div className="stack">
          <Notice tone="warn">Receivers check signatures with it. It is shown only once.</Notice>
          <CopyCommand text={secret} label="The secret" />
        </div>
      </Panel>
    );
  }
  const wish = { url, types: wanted, selector, description };
  const { spec, status } = webhook ?? {};
  const before = spec === undefined ? null : { ...spec, selector: spec.labelSelector };
  return (
    <Panel
      title={webhook === null ? "Set a webhook" : `Change ${webhook.name}`}
      actions={<Button onClick={onDone}>Close</Button>}
    >
      <form className="stack" onSubmit={submit}>
        {resumesWhenSet(spec, status?.pauseReason ?? "") && (
          <Notice tone="warn">
            Paused: {status?.pauseMessage} (<code>{status?.pauseReason}</code>). Setting the webhook resumes deliveries.
          </Notice>
        )}
        <div className="grid">
          {webhook === null && (
            <Field
              label="Name"
              maxLength={63}
              wrong={nameWrong}
              value={name}
              onChange={(event) => setName(event.target.value.trim())}
            />
          )}
          <Field
            label="Address"
            placeholder="https://"
            maxLength={2048}
            wrong={urlWrong ? "an https:// address" : undefined}
            value={url}
            onChange={(event) => setUrl(event.target.value.trim())}
          />
          <Field
            label="Types"
            placeholder="all"
            hint="For example node.approved; separate several with commas"
            value={types}
            onChange={(event) => setTypes(event.target.value)}
          />
          <Field
            label="Selector"
            hint="Only events about nodes with these labels"
            maxLength={4096}
            value={selector}
            onChange={(event) => setSelector(event.target.value)}
          />
          <Field
            label="Description"
            maxLength={256}
            value={description}
            onChange={(event) => setDescription(event.target.value)}
          />
        </div>
        {webhook !== null && (
          <Check checked={rotate} onChange={setRotate}>
            Create a new secret; for a day, deliveries are also signed with the old one
          </Check>
        )}
        <CopyCommand text={webhookCommand(name, wish, before, rotate)} label="Command line" />
        <div>
          <Button
            look="primary"
            type="submit"
            disabled={busy || name === "" || url === "" || nameWrong !== undefined || urlWrong}
          >
            Set the webhook
          </Button>
        </div>
      </form>
    </Panel>
  );
}
