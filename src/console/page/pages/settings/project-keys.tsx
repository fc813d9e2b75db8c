/** A key of the project: shown, replaced, and the one before it ended early. */

import { useState } from "preact/hooks";
import { confirmPassword } from "../../lib/api.ts";
import { dateTime } from "../../lib/format.ts";
import { isOwner } from "../../lib/session.ts";
import { Button, CodeBlock } from "../../parts/basics.tsx";
import { Question } from "../../parts/confirm.tsx";
import { Select } from "../../parts/fields.tsx";
import { words } from "../../words/index.ts";

const w = words.settings;

/** The keys as the project tells of them. */
export interface Keys {
  api_token: string;
  secret_api_token: string | null;
  /** While the key before this one counts as well. */
  api_token_backup_use?: FormerKeyUse | null;
  secret_api_token_backup_use?: FormerKeyUse | null;
}
interface FormerKeyUse {
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
 * @param change takes the project as it is after a request; resolves also when that was refused.
 * @param reload reads the project anew.
 */
export function ProjectKey({
  kind,
  stored,
  refusal,
  change,
  reload,
}: {
  kind: keyof typeof kinds;
  stored: Keys;
  refusal: string | false;
  change: (path: string, body: unknown, done: string) => Promise<void>;
  reload: () => void;
}) {
  const { title, help, action, ...names } = kinds[kind];
  const [asked, setAsked] = useState<"rotate" | "end">();
  const [grace, setGrace] = useState(graceDefault);
  const key = stored[names.key];
  const former = stored[names.use];
  const hiding = refusal || (kind === "secret" && !isOwner.value && w.onlyOwnersSee);
  const close = () => setAsked(undefined);
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
            refusal={hiding}
            onClick={() => void confirmPassword.ask().then((given) => given && reload())}
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
          <Button label={`${w.endOldKey}: ${title}`} refusal={refusal} onClick={() => setAsked("end")}>
            {w.endOldKey}
          </Button>
        ) : (
          <Button refusal={refusal} onClick={() => setAsked("rotate")}>
            {action}
          </Button>
        )}
      </div>
      {asked === "rotate" && (
        <Question
          title={`${action}: ${title}`}
          text={w.rotateText}
          action={action}
          onClose={close}
          onYes={() => void change(names.rotatePath, { grace_seconds: Number(grace) }, w.rotated)}
        >
          <Select label={w.grace} value={grace} choices={w.graces} onChange={setGrace} />
        </Question>
      )}
      {asked === "end" && (
        <Question
          title={`${w.endOldKey}: ${title}`}
          text={w.endOldKeyText}
          action={w.endOldKey}
          onClose={close}
          onYes={() => void change(names.endPath, undefined, w.oldKeyEnded)}
        />
      )}
    </section>
  );
}
