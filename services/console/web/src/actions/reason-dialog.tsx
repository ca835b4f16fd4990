import { type ReactNode, useState } from "react";
import { Button } from "../ui/button.tsx";
import { CopyCommand } from "../ui/copy.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { Field } from "../ui/field.tsx";
import { useAct } from "../ui/toasts.tsx";

/** Asks for a reason before an action that is not about nodes. */
export function ReasonDialog({
  title,
  verb,
  children,
  commandOf,
  run,
  onClose,
  danger,
  ready = true,
}: {
  readonly title: string;
  /** The label of the button. */
  readonly verb: string;
  readonly children: ReactNode;
  readonly commandOf: (reason: string) => string;
  readonly run: (reason: string) => Promise<unknown>;
  readonly onClose: () => void;
  readonly danger?: boolean;
  /** Whether the other fields of the dialog are complete. */
  readonly ready?: boolean;
}) {
  const [reason, setReason] = useState("");
  const { busy, act } = useAct();
  const confirm = () =>
    act(verb, async () => {
      await run(reason);
      onClose();
    });
  return (
    <Dialog title={title} onClose={onClose}>
      {children}
      <Field
        label="Reason (optional)"
        hint="Stored with the change"
        maxLength={1024}
        value={reason}
        onChange={(event) => setReason(event.target.value)}
        autoFocus
      />
      <CopyCommand text={commandOf(reason)} label="Command line" />
      <div className="actions">
        <Button onClick={onClose}>Cancel</Button>
        <Button look={danger ? "danger" : "primary"} disabled={busy || !ready} onClick={confirm}>
          {verb}
        </Button>
      </div>
    </Dialog>
  );
}
