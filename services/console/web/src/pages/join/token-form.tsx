import { JoinTokenService } from "@rollcall/api/rollcall/admin/v1/join_token_pb";
import { type FormEvent, useState } from "react";
import { clientOf } from "../../live/clients.ts";
import { type JoinTokenWish, tokenCommand } from "../../state/cli-command.ts";
import { parseLabelWords } from "../../state/label-words.ts";
import { parseDuration } from "../../state/time-words.ts";
import { Button } from "../../ui/button.tsx";
import { CopyCommand } from "../../ui/copy.tsx";
import { Check, Field } from "../../ui/field.tsx";
import { Panel } from "../../ui/panel.tsx";
import { useAct } from "../../ui/toasts.tsx";

const EMPTY: JoinTokenWish = {
  description: "",
  uses: "",
  ttl: "",
  namePattern: "",
  group: "",
  labels: [],
  preauthorized: false,
  ephemeral: false,
};

/** Creates a join token. */
export function TokenForm({
  onMade,
  waitsForApproval,
}: {
  readonly onMade: (made: { readonly id: string; readonly text: string }) => void;
  readonly waitsForApproval: boolean;
}) {
  const [wish, setWish] = useState(EMPTY);
  const [labelText, setLabelText] = useState("");
  const { busy, act } = useAct();
  const set = (part: Partial<JoinTokenWish>) => setWish({ ...wish, ...part });
  const words = labelText.trim() === "" ? null : parseLabelWords(labelText);
  const usesWrong = !/^(|unlimited|[1-9][0-9]{0,5})$/.test(wish.uses);
  const ttlWrong = wish.ttl !== "" && wish.ttl !== "never" && parseDuration(wish.ttl) === null;
  const labelsWrong = words !== null && (!words.ok || words.remove.length > 0);
  const labels = words?.ok ? Object.entries(words.set).map(([key, value]) => `${key}=${value}`) : [];
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    await act("Create a join token", async () => {
      const { token, text } = await clientOf(JoinTokenService).createJoinToken({
        description: wish.description,
        useLimit: limitOf(wish.uses),
        lifetime: lifetimeOf(wish.ttl),
        nodeNamePattern: wish.namePattern,
        labels: words?.ok ? { ...words.set } : {},
        group: wish.group,
        preauthorized: wish.preauthorized,
        ephemeral: wish.ephemeral,
        requestId: crypto.randomUUID(),
      });
      onMade({ id: token?.id ?? "", text });
    });
  };
  return (
    <Panel title="Let machines join">
      <form className="stack" onSubmit={submit}>
        <div className="grid">
          <Field
            label="Description"
            maxLength={256}
            value={wish.description}
            onChange={(event) => set({ description: event.target.value })}
          />
          <Field
            label="Machines"
            placeholder="1"
            hint="A number, or unlimited"
            wrong={usesWrong ? "a number, or unlimited" : undefined}
            value={wish.uses}
            onChange={(event) => set({ uses: event.target.value.trim() })}
          />
          <Field
            label="Expires after"
            placeholder="24h"
            hint="1h, 7d or never"
            wrong={ttlWrong ? "for example 1h, 7d or never" : undefined}
            value={wish.ttl}
            onChange={(event) => set({ ttl: event.target.value.trim() })}
          />
          <Field
            label="Names"
            placeholder="any"
            hint="gpu-* admits only matching names"
            value={wish.namePattern}
            onChange={(event) => set({ namePattern: event.target.value.trim() })}
          />
          <Field
            label="Labels"
            placeholder="zone=a rack=12"
            wrong={labelsWrong ? "key=value, separated by spaces" : undefined}
            value={labelText}
            onChange={(event) => setLabelText(event.target.value)}
          />
          <Field
            label="Group"
            maxLength={63}
            value={wish.group}
            onChange={(event) => set({ group: event.target.value.trim() })}
          />
        </div>
        <Check checked={wish.preauthorized} onChange={(preauthorized) => set({ preauthorized })}>
          Approve machines immediately{waitsForApproval ? "" : " (already the case, because manual approval is off)"}
        </Check>
        <Check checked={wish.ephemeral} onChange={(ephemeral) => set({ ephemeral })}>
          Ephemeral: remove nodes after they disconnect
        </Check>
        <CopyCommand text={tokenCommand({ ...wish, labels })} label="Command line" />
        <div>
          <Button look="primary" type="submit" disabled={busy || usesWrong || ttlWrong || labelsWrong}>
            Create a join token
          </Button>
        </div>
      </form>
    </Panel>
  );
}

function limitOf(uses: string) {
  if (uses === "unlimited") return { case: "unlimitedUses", value: true } as const;
  return { case: "maxUses", value: uses === "" ? 1 : Number(uses) } as const;
}

function lifetimeOf(ttl: string) {
  if (ttl === "never") return { case: "neverExpires", value: true } as const;
  const ms = parseDuration(ttl) ?? 24 * 3_600_000;
  return { case: "ttl", value: { seconds: BigInt(Math.max(1, Math.round(ms / 1000))), nanos: 0 } } as const;
}
