import { useState } from "react";
import { joinCommand, joinServer, PLATFORMS, type Platform } from "../../state/cli-command.ts";
import { Button } from "../../ui/button.tsx";
import { CopyCommand } from "../../ui/copy.tsx";
import { Notice } from "../../ui/notices.tsx";
import { Panel } from "../../ui/panel.tsx";
import { Tabs } from "../../ui/tabs.tsx";
import { JoinedNodes } from "./joined-nodes.tsx";

const TITLES: Readonly<Record<Platform, string>> = {
  shell: "In a shell",
  service: "As a service (Debian)",
  container: "As a container",
};

/** A new token: its text, shown once, the command for a machine, and the machines as they join. */
export function TokenMade({
  id,
  text,
  onDone,
}: {
  readonly id: string;
  readonly text: string;
  readonly onDone: () => void;
}) {
  const [platform, setPlatform] = useState<Platform>("shell");
  const { server, isLoopback } = joinServer(window.location);
  return (
    <>
      <Panel title={`Join token ${id}`} actions={<Button onClick={onDone}>Done</Button>}>
        <div className="stack">
          <Notice tone="warn">The token is shown only once.</Notice>
          <Tabs tabs={PLATFORMS.map((one) => [one, TITLES[one]] as const)} chosen={platform} onChoose={setPlatform} />
          <CopyCommand text={joinCommand(platform, server, text)} label={TITLES[platform]} />
          {isLoopback && (
            <p className="soft small">On another machine, replace {server} with an address that reaches this server.</p>
          )}
          {window.location.protocol === "https:" && (
            <p className="soft small">
              If no public authority issued the certificate, use <code>rollcall token create</code>. It prints the
              command with the authority's fingerprint.
            </p>
          )}
        </div>
      </Panel>
      <JoinedNodes tokenId={id} />
    </>
  );
}
