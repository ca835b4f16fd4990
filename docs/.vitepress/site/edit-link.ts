/**
 * The URL at which a repository's host edits a page, as VitePress expects it: ":path" stands for the page's file. Null
 * if a browser cannot open the repository's address, for example because it is a folder.
 * @param remote The address of a remote, as `git remote get-url` prints it.
 */
export function editPattern(remote: string): string | null {
  const ssh = /^(?:ssh:\/\/)?git@([\w.-]+)[:/]([\w./~-]+?)(?:\.git)?\/?$/.exec(remote);
  const https = /^https:\/\/(?:[^@/]+@)?([\w.-]+(?::\d+)?)\/([\w./~-]+?)(?:\.git)?\/?$/.exec(remote);
  const [, host, path] = ssh ?? https ?? [];
  return host === undefined ? null : `https://${host}/${path}/edit/main/:path`;
}
