import { ConsoleService, type GetSignInCodeResponse } from "@rollcall/api/rollcall/console/v1/console_pb";
import { useEffect, useState } from "react";
import { type CallError, toCallError } from "../live/call-error.ts";
import { clientOf } from "../live/clients.ts";
import { Button } from "../ui/button.tsx";
import { Loading, Notice } from "../ui/notices.tsx";
import { enterWith } from "./proof.ts";
import { RoleText, SignInError } from "./sign-in-error.tsx";

const sessions = clientOf(ConsoleService);

/**
 * Asks the user before using a code. A link with another person's code would sign the user in as that person, who
 * could then see what the user does.
 */
export function CodeSignIn({
  code,
  as,
  onCancel,
}: {
  readonly code: string;
  readonly as: string | undefined;
  readonly onCancel: () => void;
}) {
  const [whose, setWhose] = useState<GetSignInCodeResponse | null>(null);
  const [error, setError] = useState<CallError | null>(null);
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    sessions
      .getSignInCode({ code })
      .then(setWhose)
      .catch((cause) => setError(toCallError(cause)));
  }, [code]);
  const confirm = async () => {
    setBusy(true);
    try {
      enterWith(await sessions.signIn({ credential: { case: "code", value: code } }));
    } catch (cause) {
      setError(toCallError(cause));
      setBusy(false);
    }
  };
  if (error !== null) {
    return (
      <>
        <SignInError error={error} />
        <Button onClick={onCancel}>Sign in another way</Button>
      </>
    );
  }
  if (whose === null) return <Loading lines={2} />;
  return (
    <>
      <p>
        Sign in as <strong className="breaks">{whose.name || whose.actor}</strong> with the role{" "}
        <RoleText role={whose.role} />?
      </p>
      {as !== undefined && <Notice tone="warn">This browser is signed in as {as}. That session will end.</Notice>}
      <p className="soft small">Continue only if you just ran rollcall console yourself.</p>
      <div className="row">
        <Button look="primary" disabled={busy} onClick={confirm} autoFocus>
          Sign in as {whose.name || whose.actor}
        </Button>
        <Button
          onClick={() => {
            if (as === undefined) onCancel();
            else window.location.replace("/");
          }}
        >
          Cancel
        </Button>
      </div>
    </>
  );
}
