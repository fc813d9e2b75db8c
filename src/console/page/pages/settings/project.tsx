/** Project settings: name, time zone, change approval, keys, archiving. */

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Combobox, type ComboOption } from "../../components/combobox.tsx";
import { ConfirmDialog } from "../../components/confirm.tsx";
import { Checkbox, Field, Segments, Select } from "../../components/fields.tsx";
import { Form, FormDialog } from "../../components/form.tsx";
import { Button } from "../../components/primitives.tsx";
import { Content } from "../../components/states.tsx";
import { toast, toastError } from "../../components/toast.tsx";
import { request } from "../../lib/api.ts";
import type { ProjectWithDetails as Project } from "../../lib/api-types.ts";
import { useForm, useUnsavedFields } from "../../lib/form.ts";
import { type Resource, useResource } from "../../lib/resource.ts";
import { useAddress } from "../../lib/router.ts";
import {
  chooseProject,
  inProject,
  isAdmin,
  isOwner,
  loadSession,
  project,
  projects,
} from "../../lib/session.ts";
import { messages } from "../../messages/index.ts";
import { ProjectKey } from "./project-keys.tsx";

const w = messages.settings;

/** By region: "Europe" for "Europe/Berlin". */
const timezones: readonly ComboOption[] = ["UTC", ...Intl.supportedValuesOf("timeZone")]
  .filter((zone, position, all) => all.indexOf(zone) === position)
  .map((zone) => ({ value: zone, group: zone.includes("/") ? zone.split("/")[0]! : w.timezone }));

interface PartProps {
  stored: Project;
  resource: Resource<Project>;
}

/** The current project, once it is loaded. */
function OfProject({ children }: { children: (props: PartProps) => ComponentChildren }) {
  const found = useResource<Project>(`project ${project.value?.id}`, (signal) =>
    request(inProject(""), { signal }),
  );
  return <Content resource={found}>{(stored) => children({ stored, resource: found })}</Content>;
}

/** Applies a request that responds with the project, and reports the result. */
async function applyChange({ stored, resource }: PartProps, work: Promise<Project>, done: string) {
  try {
    resource.replace({ ...stored, ...(await work) });
    toast(done);
  } catch (error) {
    toastError(error);
  }
}

const whyNotAdmin = () => !isAdmin.value && messages.frame.onlyAdmins;

export const ProjectSettings = () => (
  <OfProject>{(props) => <General key={props.stored.id} {...props} />}</OfProject>
);

/** Which changes of flags need approval. */
export const ApprovalSettings = () => (
  <OfProject>
    {(props) => (
      <section class="card stack">
        <h2>{w.approvals}</h2>
        <p class="help">{w.approvalsHelp}</p>
        <Segments
          label={w.approvals}
          value={props.stored.approvals ?? "off"}
          choices={Object.entries(w.approvalKinds)}
          disabledReason={whyNotAdmin()}
          onChange={(approvals) =>
            void applyChange(
              props,
              request<Project>(inProject(""), { method: "PATCH", body: { approvals } }),
              w.saved,
            )
          }
        />
      </section>
    )}
  </OfProject>
);

/** The project's public and secret key. */
export const ProjectKeys = () => (
  <OfProject>
    {(props) => (
      <div class="stack">
        {(["public", "secret"] as const).map((kind) => (
          <ProjectKey
            key={`${kind} ${props.stored.id}`}
            kind={kind}
            stored={props.stored}
            disabledReason={whyNotAdmin()}
            reload={props.resource.reload}
            change={async (path, body, done) => {
              await applyChange(props, request<Project>(inProject(path), { method: "POST", body }), done);
              await loadSession();
            }}
          />
        ))}
      </div>
    )}
  </OfProject>
);

/** Archived projects, which can be restored. */
function Archived({ disabledReason }: { disabledReason: string | false }) {
  const found = useResource<{ results: { id: number; name: string }[] }>(
    `archived projects besides ${projects.value.length}`,
    (signal) => request("/api/projects/?archived=true&limit=500", { signal }),
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
              disabledReason={disabledReason}
              onClick={() => {
                request(`/api/projects/${id}/`, { method: "PATCH", body: { archived: false } }).then(
                  async () => {
                    toast(w.unarchived(name));
                    await loadSession();
                    found.reload();
                  },
                  toastError,
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

function General({ stored, resource }: PartProps) {
  const { go, query } = useAddress();
  const unsaved = useUnsavedFields("project");
  const [name, setName] = unsaved.field("name", stored.name);
  const [timezone, setTimezone] = unsaved.field("timezone", stored.timezone);
  const [weekStart, setWeekStart] = unsaved.field("weekStart", String(stored.week_start_day ?? 1));
  const [anonymizes, setAnonymizes] = unsaved.field("anonymizes", stored.anonymize_ips);
  const [countsScreens, setCountsScreens] = unsaved.field("countsScreens", stored.count_screens);
  const [isArchiving, setArchiving] = useState(false);
  const [isCreating, setCreating] = useState(query.new === "project");
  useEffect(() => {
    if (query.new === "project") setCreating(true);
  }, [query.new]);
  const created = useForm({ name: "" }, async (body) => {
    const { id } = await request<Project>("/api/organizations/@current/projects/", { method: "POST", body });
    setCreating(false);
    await loadSession();
    chooseProject(id);
    go("settings");
  });
  const disabledReason = whyNotAdmin();
  return (
    <div class="stack">
      <section class="card">
        <h2>{w.tabs.project}</h2>
        <Form
          unsaved={unsaved}
          disabledReason={disabledReason}
          onSend={async () => {
            const weeks =
              Number(weekStart) === (stored.week_start_day ?? 1) ? {} : { week_start_day: Number(weekStart) };
            const body = {
              name,
              timezone,
              ...weeks,
              anonymize_ips: anonymizes,
              count_screens: countsScreens,
            };
            resource.replace(await request<Project>(inProject(""), { method: "PATCH", body }));
            await loadSession();
          }}
        >
          {(errorOf) => (
            <>
              <div class="columns">
                <Field label={w.name} value={name} onInput={setName} error={errorOf("name")} />
                <Combobox
                  label={w.timezone}
                  value={timezone}
                  onInput={setTimezone}
                  options={timezones}
                  help={w.timezoneHelp}
                  error={errorOf("timezone")}
                />
              </div>
              <Select
                label={w.weekStart}
                value={weekStart}
                choices={Object.entries(w.weekStarts)}
                disabledReason={disabledReason}
                onChange={setWeekStart}
              />
              <Checkbox label={w.anonymize} isOn={anonymizes} onChange={setAnonymizes} />
              <Checkbox
                label={w.countScreens}
                help={w.countScreensHelp}
                isOn={countsScreens}
                onChange={setCountsScreens}
              />
            </>
          )}
        </Form>
      </section>
      <div>
        <Button icon="plus" disabledReason={disabledReason} onClick={() => setCreating(true)}>
          {w.newProject}
        </Button>
      </div>
      <Archived disabledReason={disabledReason} />
      <section class="card stack">
        <h2>{w.dangerZone}</h2>
        <div class="row apart">
          <p class="help">{w.archiveText}</p>
          <Button
            kind="danger"
            disabledReason={!isOwner.value && !isAdmin.value && messages.frame.onlyAdmins}
            onClick={() => setArchiving(true)}
          >
            {w.archive}
          </Button>
        </div>
      </section>
      {isCreating && (
        <FormDialog
          title={w.newProject}
          form={created}
          action={w.createProject}
          onClose={() => setCreating(false)}
        >
          <Field label={w.name} {...created.input("name")} isRequired autofocus />
        </FormDialog>
      )}
      {isArchiving && (
        <ConfirmDialog
          title={w.archive}
          text={w.archiveText}
          action={w.archive}
          onClose={() => setArchiving(false)}
          onYes={() => {
            request(inProject(""), { method: "PATCH", body: { archived: true } }).then(async () => {
              toast(w.archived);
              await loadSession();
              go("settings");
            }, toastError);
          }}
        />
      )}
    </div>
  );
}
