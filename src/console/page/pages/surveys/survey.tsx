/** One survey: its results, responses and editor; launched and stopped here. */

import { useState } from "preact/hooks";
import { useRoute } from "preact-iso";
import { ConfirmDialog } from "../../components/confirm.tsx";
import { Menu } from "../../components/menu.tsx";
import { Page } from "../../components/page.tsx";
import { Button, Tabs } from "../../components/primitives.tsx";
import { Content } from "../../components/states.tsx";
import { toast, toastError } from "../../components/toast.tsx";
import { request } from "../../lib/api.ts";
import { clearResourceCache, reloadResources, useResource } from "../../lib/resource.ts";
import { useAddress } from "../../lib/router.ts";
import { inProject, project } from "../../lib/session.ts";
import { messages } from "../../messages/index.ts";
import { lazyMessages } from "../../messages/later.ts";
import {
  changeSurvey,
  deleteSurvey,
  duplicateSurvey,
  freshSurvey,
  getDraft,
  type Survey,
  surveyPath,
} from "../../model/surveys.ts";
import { SurveyEditor } from "./editor.tsx";
import { SurveyResponses } from "./responses.tsx";
import { SurveyResults } from "./results.tsx";
import { SurveyBadge } from "./surveys.tsx";

const w = lazyMessages.surveys;
/** Of names, as the API has it. */
const nameMax = 400;
type Tab = keyof typeof w.tabs;

/** What the editor changes, as it is stored. */
const getBase = (survey: Survey) => JSON.stringify([getDraft(survey), survey.targeting_flag?.filters]);

export function NewSurvey() {
  const { go } = useAddress();
  const [start] = useState(freshSurvey);
  return (
    <Page title={w.newSurvey} isWide>
      <SurveyEditor
        draftKey={`survey ${project.value?.id} new`}
        base=""
        start={start}
        action={w.create}
        onSave={(body) => request<Survey>(inProject("surveys/"), { method: "POST", body })}
        onSaved={({ id }) => go(`surveys/${id}`, { tab: "edit" })}
      />
    </Page>
  );
}

export function SurveyPage() {
  const { id = "" } = useRoute().params as { id?: string };
  const { query, set, go } = useAddress();
  const [isRemoving, setRemoving] = useState(false);
  const survey = useResource<Survey>(`survey ${project.value?.id} ${id}`, (signal) =>
    request(surveyPath(id), { signal }),
  );
  const remove = async (deleted: Survey) => {
    try {
      const restore = await deleteSurvey(deleted);
      // The cached list still has it.
      clearResourceCache();
      go("surveys");
      toast(
        w.deleted(deleted.name),
        () =>
          void restore().then((restored) => {
            toast(w.restored(restored.name));
            reloadResources();
          }, toastError),
      );
    } catch (error) {
      toastError(error);
    }
  };
  const first: Tab = survey.data?.status === "draft" ? "edit" : "results";
  const tab: Tab = query.tab !== undefined && query.tab in w.tabs ? (query.tab as Tab) : first;
  return (
    <Page
      title={survey.data?.name ?? messages.frame.pages.surveys}
      isWide
      action={
        survey.data && (
          <Actions survey={survey.data} onChanged={survey.replace} onRemove={() => setRemoving(true)} />
        )
      }
    >
      <Content resource={survey}>
        {(data) => (
          <>
            <p>
              <SurveyBadge survey={data} />
            </p>
            <Tabs
              label={data.name}
              tabs={Object.entries(w.tabs) as [Tab, string][]}
              current={tab}
              onChoose={(name) => set({ tab: name }, true)}
            />
            {tab === "results" && <SurveyResults id={id} />}
            {tab === "responses" && <SurveyResponses survey={data} />}
            {tab === "edit" && (
              <SurveyEditor
                // A saved survey has ids of questions and sanitized texts.
                key={getBase(data)}
                draftKey={`survey ${id}`}
                base={getBase(data)}
                start={getDraft(data)}
                targeting={data.targeting_flag?.filters ?? null}
                action={messages.frame.save}
                onSave={(body) => changeSurvey(id, body)}
                onSaved={(saved) => {
                  survey.replace(saved);
                  toast(w.saved);
                }}
              />
            )}
            {isRemoving && (
              <ConfirmDialog
                title={w.deleteSurvey}
                text={w.deleteText(data.name)}
                action={w.deleteSurvey}
                onClose={() => setRemoving(false)}
                onYes={() => void remove(data)}
              />
            )}
          </>
        )}
      </Content>
    </Page>
  );
}

function Actions({
  survey,
  onChanged,
  onRemove,
}: {
  survey: Survey;
  onChanged: (after: Survey) => void;
  onRemove: () => void;
}) {
  const { id, status, archived } = survey;
  const { go } = useAddress();
  const change = (body: Record<string, unknown>, done?: string) =>
    void changeSurvey(id, body).then((after) => {
      onChanged(after);
      if (done) toast(done);
    }, toastError);
  const duplicate = async () => {
    try {
      const copy = await duplicateSurvey(survey, w.copyOf(survey.name).slice(0, nameMax));
      toast(w.duplicated);
      go(`surveys/${copy.id}`, { tab: "edit" });
    } catch (error) {
      toastError(error);
    }
  };
  const now = () => new Date().toISOString();
  return (
    <span class="row">
      {status === "draft" && (
        <Button kind="main" icon="play" onClick={() => change({ start_date: now() }, w.started)}>
          {w.start}
        </Button>
      )}
      {status === "running" && !archived && (
        <Button icon="pause" onClick={() => change({ end_date: now() }, w.stopped)}>
          {w.stop}
        </Button>
      )}
      {status === "completed" && (
        <Button icon="play" onClick={() => change({ end_date: null }, w.started)}>
          {w.resume}
        </Button>
      )}
      <Menu
        label={w.moreActions}
        face="⋯"
        items={[
          [w.duplicate, () => void duplicate()],
          archived
            ? [w.unarchive, () => change({ archived: false }, w.unarchived)]
            : [
                w.archive,
                () => change({ archived: true }, w.archivedDone),
                status === "running" && w.stopFirst,
              ],
          [w.deleteSurvey, onRemove],
        ]}
      />
    </span>
  );
}
