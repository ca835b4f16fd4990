import type { Role } from "@rollcall/api/rollcall/admin/v1/access_pb";
import type { CallError } from "../live/call-error.ts";
import { roleWord } from "../state/roles.ts";
import { Notice } from "../ui/notices.tsx";

/** Explains why sign-in failed. */
export function SignInError({ error }: { readonly error: CallError }) {
  return (
    <Notice tone="bad">
      {error.message} <code>{error.reason}</code>
      {error.reason === "SIGN_IN_CODE_USED" && (
        <p>
          If you did not use it, <code>rollcall console --sign-out</code> ends all of your sessions.
        </p>
      )}
    </Notice>
  );
}

/** The role, in the question whether to sign in with this role. */
export function RoleText({ role }: { readonly role: Role }) {
  return <strong>{roleWord(role)}</strong>;
}
