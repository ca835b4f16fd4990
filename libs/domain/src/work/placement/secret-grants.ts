/** A secret of a node, and which jobs can use it. */
export interface NodeSecret {
  readonly name: string;
  /** Grants in the form OWNER/JOB, for example "token:ci/web". Either part can end in "*". */
  readonly grants: readonly string[];
}

/** A job that uses secrets, and the owner of the version. */
export interface SecretUser {
  readonly owner: string;
  readonly job: string;
}

const GRANT = /^(\*|(?:token|user):[^\s,]{1,300})\/(\*|[A-Za-z0-9][A-Za-z0-9._-]{0,62}\*?)$/;

/** Whether a string is a secret grant, in the form OWNER/JOB. */
export function isSecretGrant(text: string): boolean {
  return GRANT.test(text);
}

/** Whether a job can use a secret of a node: a single grant must match both the owner and the job. */
export function canUseSecret(secrets: readonly NodeSecret[], name: string, { owner, job }: SecretUser): boolean {
  const grants = secrets.find((secret) => secret.name === name)?.grants ?? [];
  return grants.some((grant) => {
    // Split at the last slash, because owners can contain slashes but job names cannot.
    const at = grant.lastIndexOf("/");
    return at >= 0 && covers(grant.slice(0, at), owner) && covers(grant.slice(at + 1), job);
  });
}

function covers(pattern: string, text: string): boolean {
  return pattern.endsWith("*") ? text.startsWith(pattern.slice(0, -1)) : text === pattern;
}
