import type { Role } from "@rollcall/api/rollcall/admin/v1/access_pb";
import type { CallError } from "../live/call-error.ts";
import { roleWord } from "../state/roles.ts";
import { Notice } from "../ui/notices.tsx";

/** What sign-in failed with. */
export function SignInError({ error }: { readonly error: CallError }) {
  return (
    <Notice tone="bad">
      {error.message} <code>{error.reason}</code>
      {error.reason === "SIGN_IN_CODE_USED" && (
        <p>
          If it was not you who used it, <code>rollcall console --sign-out</code> ends every session that acts for you.
        </p>
      )}
    </Notice>
  );
}

/** A role for the question whether to sign in with it. */
export function RoleText({ role }: { readonly role: Role }) {
  return <strong>{roleWord(role)}</strong>;
}
