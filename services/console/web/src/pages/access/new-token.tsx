import { Role } from "@rollcall/api/rollcall/admin/v1/access_pb";
import { type FormEvent, useState } from "react";
import { access } from "../../live/clients.ts";
import { command } from "../../state/cli-command.ts";
import { roleWord } from "../../state/roles.ts";
import { parseDuration } from "../../state/time-words.ts";
import { Button } from "../../ui/button.tsx";
import { CopyCommand } from "../../ui/copy.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Choice, Field } from "../../ui/field.tsx";
import { Notice } from "../../ui/notices.tsx";
import { useAct } from "../../ui/toasts.tsx";

const ROLES = [Role.VIEWER, Role.OPERATOR, Role.SUBMITTER, Role.ADMIN] as const;

/** Creates an access token; its text is shown once. */
export function NewToken({ onClose, onMade }: { readonly onClose: () => void; readonly onMade: () => unknown }) {
  const [name, setName] = useState("");
  const [role, setRole] = useState<Role>(Role.VIEWER);
  const [ttl, setTtl] = useState("30d");
  const [text, setText] = useState<string | null>(null);
  const { busy, act } = useAct();
  const ttlMs = ttl === "" ? null : parseDuration(ttl);
  const isWrong = ttl !== "" && ttlMs === null;
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    await act("Create a token", async () => {
      const lasts = ttlMs === null ? {} : { ttl: { seconds: BigInt(Math.round(ttlMs / 1000)), nanos: 0 } };
      const made = await access.createAccessToken({ name, role, requestId: crypto.randomUUID(), ...lasts });
      setText(made.text);
      onMade();
    });
  };
  if (text !== null) {
    return (
      <Dialog title={`Token ${name}`} onClose={onClose}>
        <Notice tone="warn">It is shown only once.</Notice>
        <CopyCommand text={text} label="The token" />
        <div className="actions">
          <Button look="primary" onClick={onClose}>
            Done
          </Button>
        </div>
      </Dialog>
    );
  }
  const words = [name, "--role", roleWord(role), ...(ttl === "" ? [] : ["--ttl", ttl])];
  return (
    <Dialog title="Create an access token" onClose={onClose}>
      <form className="stack" onSubmit={submit}>
        <Field label="Name" maxLength={128} value={name} onChange={(event) => setName(event.target.value)} autoFocus />
        <Choice
          label="Role"
          value={roleWord(role)}
          onChange={(word) => setRole(ROLES.find((one) => roleWord(one) === word) ?? Role.VIEWER)}
          options={ROLES.map((one) => [roleWord(one), roleWord(one)] as const)}
        />
        <Field
          label="Lifetime"
          hint="8h or 30d; empty means until it is revoked"
          wrong={isWrong ? "for example 8h or 30d" : undefined}
          value={ttl}
          onChange={(event) => setTtl(event.target.value.trim())}
        />
        <CopyCommand text={command("access", "create", ...words)} label="Command line" />
        <div className="actions">
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" type="submit" disabled={busy || name.trim() === "" || isWrong}>
            Create a token
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
