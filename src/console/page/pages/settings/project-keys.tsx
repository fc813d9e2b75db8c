/** Shows and rotates a project key, and revokes its predecessor. */

import { useState } from "preact/hooks";
import { ConfirmDialog } from "../../components/confirm.tsx";
import { Select } from "../../components/fields.tsx";
import { Button, CodeBlock } from "../../components/primitives.tsx";
import { confirmPassword } from "../../lib/api.ts";
import { dateTime } from "../../lib/format.ts";
import { isOwner } from "../../lib/session.ts";
import { messages } from "../../messages/index.ts";

const w = messages.settings;

/** The keys in a project's response. */
export interface Keys {
  api_token: string;
  secret_api_token: string | null;
  /** Present while the predecessor is valid. */
  api_token_backup_use?: PreviousKeyUsage | null;
  secret_api_token_backup_use?: PreviousKeyUsage | null;
}
interface PreviousKeyUsage {
  ends_at: string;
  requests: number;
  requests_with_new: number;
}

const kinds = {
  public: {
    title: w.projectKey,
    help: w.projectKeyHelp,
    action: w.rotate,
    key: "api_token",
    use: "api_token_backup_use",
    rotatePath: "reset_token/",
    endPath: "delete_token_backup/",
  },
  secret: {
    title: w.secretKey,
    help: w.secretKeyHelp,
    action: w.rotateSecret,
    key: "secret_api_token",
    use: "secret_api_token_backup_use",
    rotatePath: "rotate_secret_token/",
    endPath: "delete_secret_token_backup/",
  },
} as const;
const graceDefault = String(7 * 86_400);

/**
 * @param change receives the project after a request; also resolves if that failed.
 * @param reload reads the project again.
 */
export function ProjectKey({
  kind,
  stored,
  disabledReason,
  change,
  reload,
}: {
  kind: keyof typeof kinds;
  stored: Keys;
  disabledReason: string | false;
  change: (path: string, body: unknown, done: string) => Promise<void>;
  reload: () => void;
}) {
  const { title, help, action, ...names } = kinds[kind];
  const [requested, setRequested] = useState<"rotate" | "end">();
  const [grace, setGrace] = useState(graceDefault);
  const key = stored[names.key];
  const former = stored[names.use];
  const hiding = disabledReason || (kind === "secret" && !isOwner.value && w.onlyOwnersSee);
  const close = () => setRequested(undefined);
  return (
    <section class="card stack">
      <h2>{title}</h2>
      <p class="help">{help}</p>
      {key ? (
        <CodeBlock label={title} code={key} />
      ) : (
        <div class="row">
          <span class="muted">{hiding || w.hiddenKey}</span>
          <Button
            disabledReason={hiding}
            onClick={() => void confirmPassword.ask().then((sent) => sent && reload())}
          >
            {w.showKey}
          </Button>
        </div>
      )}
      {former && (
        <p>
          {w.oldKey(dateTime(former.ends_at), former.requests, former.requests + former.requests_with_new)}
        </p>
      )}
      <div class="row">
        {former ? (
          <Button
            label={`${w.revokeOldKey}: ${title}`}
            disabledReason={disabledReason}
            onClick={() => setRequested("end")}
          >
            {w.revokeOldKey}
          </Button>
        ) : (
          <Button disabledReason={disabledReason} onClick={() => setRequested("rotate")}>
            {action}
          </Button>
        )}
      </div>
      {requested === "rotate" && (
        <ConfirmDialog
          title={`${action}: ${title}`}
          text={w.rotateText}
          action={action}
          onClose={close}
          onYes={() => void change(names.rotatePath, { grace_seconds: Number(grace) }, w.rotated)}
        >
          <Select label={w.grace} value={grace} choices={w.graces} onChange={setGrace} />
        </ConfirmDialog>
      )}
      {requested === "end" && (
        <ConfirmDialog
          title={`${w.revokeOldKey}: ${title}`}
          text={w.revokeOldKeyText}
          action={w.revokeOldKey}
          onClose={close}
          onYes={() => void change(names.endPath, undefined, w.oldKeyEnded)}
        />
      )}
    </section>
  );
}
