/** The project: name, zone, keys, the end of it. */

import { useState } from "preact/hooks";
import { ask, wordsOf } from "../../lib/api.ts";
import { dateTime } from "../../lib/format.ts";
import { type Resource, useResource } from "../../lib/resource.ts";
import {
  chooseProject,
  inProject,
  isAdmin,
  isOwner,
  loadSession,
  project,
  projects,
} from "../../lib/session.ts";
import { Button, CodeBlock } from "../../parts/basics.tsx";
import { Question } from "../../parts/confirm.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Checkbox, Field, Segments } from "../../parts/fields.tsx";
import { Form } from "../../parts/form.tsx";
import { Content } from "../../parts/states.tsx";
import { complain, tell } from "../../parts/toast.tsx";
import { words } from "../../words/index.ts";

const w = words.settings;

interface Project {
  id: number;
  name: string;
  timezone: string;
  anonymize_ips: boolean;
  /** Which changes of flags need somebody else's agreement. */
  approvals?: string;
  api_token: string;
  secret_api_token: string | null;
  /** While the key before this one counts as well. */
  api_token_backup_use?: { ends_at: string; requests: number; requests_with_new: number } | null;
}

/** How long a key that is replaced here still counts. */
const graceSeconds = 7 * 86_400;

export function ProjectSettings() {
  const found = useResource<Project>(`project ${project.value?.id}`, (signal) =>
    ask(inProject(""), { signal }),
  );
  return <Content of={found}>{(data) => <Parts key={data.id} stored={data} resource={found} />}</Content>;
}

/** Projects that were put away; they can be opened again. */
function Archived({ refusal }: { refusal: string | false }) {
  const found = useResource<{ results: { id: number; name: string }[] }>(
    `archived projects besides ${projects.value.length}`,
    (signal) => ask("/api/projects/?archived=true&limit=500", { signal }),
  );
  const archived = found.data?.results ?? [];
  if (archived.length === 0) return null;
  return (
    <section class="card">
      <h2>{w.archivedTitle}</h2>
      <ul class="lines">
        {archived.map(({ id, name }) => (
          <li key={id} class="row apart">
            {name}
            <Button
              label={`${w.unarchive} ${name}`}
              refusal={refusal}
              onClick={() => {
                ask(`/api/projects/${id}/`, { method: "PATCH", body: { archived: false } }).then(
                  async () => {
                    tell(w.unarchived(name));
                    await loadSession();
                    found.reload();
                  },
                  (error) => complain(wordsOf(error)),
                );
              }}
            >
              {w.unarchive}
            </Button>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Parts({ stored, resource }: { stored: Project; resource: Resource<Project> }) {
  const [name, setName] = useState(stored.name);
  const [timezone, setTimezone] = useState(stored.timezone);
  const [anonymizes, setAnonymizes] = useState(stored.anonymize_ips);
  const [asked, setAsked] = useState<"rotate" | "archive">();
  const [isMaking, setMaking] = useState(false);
  const [newName, setNewName] = useState("");
  const oldKey = stored.api_token_backup_use;
  const refusal = !isAdmin.value && words.frame.onlyAdmins;
  const change = async (work: Promise<Project>, done: string) => {
    try {
      resource.replace({ ...stored, ...(await work) });
      tell(done);
    } catch (error) {
      complain(wordsOf(error));
    }
  };
  return (
    <div class="stack">
      <section class="card">
        <h2>{w.tabs.project}</h2>
        <Form
          refusal={refusal}
          onSend={async () => {
            const body = { name, timezone, anonymize_ips: anonymizes };
            resource.replace(await ask<Project>(inProject(""), { method: "PATCH", body }));
            await loadSession();
          }}
        >
          {(errorOf) => (
            <>
              <div class="columns">
                <Field label={w.name} value={name} onInput={setName} error={errorOf("name")} />
                <Field
                  label={w.timezone}
                  value={timezone}
                  onInput={setTimezone}
                  suggestions={Intl.supportedValuesOf("timeZone").filter((zone) =>
                    zone.toLowerCase().includes(timezone.toLowerCase()),
                  )}
                  help={w.timezoneHelp}
                  error={errorOf("timezone")}
                />
              </div>
              <Checkbox label={w.anonymize} isOn={anonymizes} onChange={setAnonymizes} />
            </>
          )}
        </Form>
      </section>
      {stored.approvals !== undefined && (
        <section class="card stack">
          <h2>{w.approvals}</h2>
          <p class="help">{w.approvalsHelp}</p>
          <Segments
            label={w.approvals}
            value={stored.approvals}
            choices={Object.entries(w.approvalKinds)}
            refusal={refusal}
            onChange={(approvals) =>
              void change(ask<Project>(inProject(""), { method: "PATCH", body: { approvals } }), w.saved)
            }
          />
        </section>
      )}
      <section class="card stack">
        <h2>{w.projectKey}</h2>
        <p class="help">{w.projectKeyHelp}</p>
        <CodeBlock label={w.projectKey} code={stored.api_token} />
        {oldKey && (
          <p>
            {w.oldKey(dateTime(oldKey.ends_at), oldKey.requests, oldKey.requests + oldKey.requests_with_new)}
          </p>
        )}
        <div class="row">
          {oldKey ? (
            <Button
              refusal={refusal}
              onClick={() =>
                void change(ask(inProject("delete_token_backup/"), { method: "POST" }), w.oldKeyEnded)
              }
            >
              {w.endOldKey}
            </Button>
          ) : (
            <Button refusal={refusal} onClick={() => setAsked("rotate")}>
              {w.rotate}
            </Button>
          )}
        </div>
      </section>
      <section class="card stack">
        <h2>{w.secretKey}</h2>
        <p class="help">{w.secretKeyHelp}</p>
        {stored.secret_api_token ? (
          <CodeBlock label={w.secretKey} code={stored.secret_api_token} />
        ) : (
          <p class="muted">{w.noSecret}</p>
        )}
        <div class="row">
          <Button
            refusal={refusal}
            onClick={() => void change(ask(inProject("rotate_secret_token/"), { method: "POST" }), w.rotated)}
          >
            {w.rotateSecret}
          </Button>
        </div>
      </section>
      <div class="row">
        <Button icon="plus" refusal={refusal} onClick={() => setMaking(true)}>
          {w.newProject}
        </Button>
        <Button
          kind="danger"
          refusal={!isOwner.value && !isAdmin.value && words.frame.onlyAdmins}
          onClick={() => setAsked("archive")}
        >
          {w.archive}
        </Button>
      </div>
      <Archived refusal={refusal} />
      {isMaking && (
        <Dialog
          title={w.newProject}
          onClose={() => setMaking(false)}
          onSubmit={() => {
            ask<Project>("/api/organizations/@current/projects/", {
              method: "POST",
              body: { name: newName },
            }).then(
              async (made) => {
                setMaking(false);
                await loadSession();
                chooseProject(made.id);
              },
              (error) => complain(wordsOf(error)),
            );
          }}
          actions={
            <Button kind="main" type="submit">
              {w.makeProject}
            </Button>
          }
        >
          <Field label={w.name} value={newName} onInput={setNewName} isRequired autofocus />
        </Dialog>
      )}
      {asked === "rotate" && (
        <Question
          title={`${w.rotate}: ${w.projectKey}`}
          text={w.rotateText}
          action={w.rotate}
          onClose={() => setAsked(undefined)}
          onYes={() => {
            const body = { grace_seconds: graceSeconds };
            void change(ask<Project>(inProject("reset_token/"), { method: "POST", body }), w.rotated).then(
              loadSession,
            );
          }}
        />
      )}
      {asked === "archive" && (
        <Question
          title={w.archive}
          text={w.archiveText}
          action={w.archive}
          onClose={() => setAsked(undefined)}
          onYes={() => {
            ask(inProject(""), { method: "PATCH", body: { archived: true } }).then(
              async () => {
                tell(w.archived);
                await loadSession();
              },
              (error) => complain(wordsOf(error)),
            );
          }}
        />
      )}
    </div>
  );
}
