/**
 * Explain to a person why their groups give them no role: the issuer left the groups out of the token. Null if the
 * token contains them.
 *
 * @param claim the claim that says that groups were left out; "" for none.
 */
export function groupsLeftOutText(claim: string, role: string): string | null {
  if (claim === "") return null;
  return (
    `the issuer left your groups out of the token because there are too many (${claim}), so your groups give you ` +
    `no role and you have the role ${role}; ask your administrator to configure the issuer to send only groups ` +
    "that are assigned to the application"
  );
}
