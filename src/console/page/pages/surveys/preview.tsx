/** The survey as posthog-js renders it, in a sandboxed frame: its texts run no scripts here and read no session. */

import { useEffect, useRef, useState } from "preact/hooks";
import { Select } from "../../components/fields.tsx";
import { serverPath } from "../../lib/server.ts";
import { lazyMessages } from "../../messages/later.ts";
import type { SurveyDraft } from "../../model/surveys.ts";

const w = lazyMessages.surveys;
/** Of posthog-js. */
const introPage = -1;
/** As the server has texts without a type; posthog-js renders them as HTML. */
const plain = { descriptionContentType: "text" };
const plainScreens = {
  introScreenDescriptionContentType: "text",
  thankYouMessageDescriptionContentType: "text",
};
const frameAddress = `${serverPath}/console/survey-preview`;

export function SurveyPreview({ draft }: { draft: SurveyDraft }) {
  const frame = useRef<HTMLIFrameElement>(null);
  const [page, setPage] = useState(0);
  const [loads, setLoads] = useState(0);
  const { questions, appearance } = draft;
  // After the last question posthog-js shows the thank-you message.
  const hasThanks = appearance.displayThankYouMessage === true;
  const hasIntro =
    appearance.displayIntroScreen === true &&
    Boolean(appearance.introScreenHeader || appearance.introScreenDescription);
  const shown = Math.max(
    hasIntro ? introPage : 0,
    Math.min(page, hasThanks ? questions.length : questions.length - 1),
  );
  useEffect(() => {
    // posthog-js remembers the order of questions by the id of the survey.
    const id = `preview ${questions.map((question) => question.id).join(" ")}`;
    // The frame has no origin to name.
    const survey = {
      ...draft,
      id,
      questions: questions.map((question) => ({ ...plain, ...question })),
      appearance: { ...plainScreens, ...appearance },
    };
    frame.current?.contentWindow?.postMessage({ survey, page: shown }, "*");
  }, [draft, shown, loads]);
  return (
    <div class="stack">
      <Select
        label={w.preview}
        value={String(shown)}
        choices={[
          ...(hasIntro ? [[String(introPage), w.introScreen] as const] : []),
          ...questions.map((_, position) => [String(position), w.question(position + 1)] as const),
          ...(hasThanks ? [[String(questions.length), w.thanksScreen] as const] : []),
        ]}
        onChange={(position) => setPage(Number(position))}
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
