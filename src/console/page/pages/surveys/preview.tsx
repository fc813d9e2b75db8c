/** The survey as posthog-js renders it, in a sandboxed frame: its texts run no scripts here and read no session. */

import { useEffect, useRef, useState } from "preact/hooks";
import { Select } from "../../components/fields.tsx";
import { serverPath } from "../../lib/server.ts";
import { lazyMessages } from "../../messages/later.ts";
import type { SurveyDraft } from "../../model/surveys.ts";

const w = lazyMessages.surveys;
const frameAddress = `${serverPath}/console/survey-preview`;

export function SurveyPreview({ draft }: { draft: SurveyDraft }) {
  const frame = useRef<HTMLIFrameElement>(null);
  const [page, setPage] = useState(0);
  const [loads, setLoads] = useState(0);
  const { questions } = draft;
  // After the last question posthog-js shows the thank-you message.
  const hasThanks = draft.appearance.displayThankYouMessage === true;
  const shown = Math.min(page, hasThanks ? questions.length : questions.length - 1);
  useEffect(() => {
    // posthog-js remembers the order of questions by the id of the survey.
    const id = `preview ${questions.map((question) => question.id).join(" ")}`;
    // The frame has no origin to name.
    frame.current?.contentWindow?.postMessage({ survey: { ...draft, id }, page: shown }, "*");
  }, [draft, shown, loads]);
  return (
    <div class="stack">
      <Select
        label={w.preview}
        value={String(shown)}
        choices={[
          ...questions.map((_, place) => [String(place), w.question(place + 1)] as const),
          ...(hasThanks ? [[String(questions.length), w.thanksScreen] as const] : []),
        ]}
        onChange={(place) => setPage(Number(place))}
      />
      <iframe
        ref={frame}
        class="survey-preview"
        title={w.preview}
        sandbox="allow-scripts"
        src={frameAddress}
        onLoad={() => setLoads((count) => count + 1)}
      />
    </div>
  );
}
