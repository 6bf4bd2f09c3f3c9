#include "study/study_figures.h"

namespace headscope {

std::vector<Figure> study_figures(const StudyFigureData& data, const Theme& theme) {
  return {study_loss_figure(data), study_pr_figure(data), study_layer_figure(data), study_effect_figure(data),
          study_gamma_figure(data, theme)};
}

std::vector<std::filesystem::path> draw_study_figures(const StudyFigureData& data, const std::filesystem::path& folder,
                                                      const Theme& theme) {
  return draw(study_figures(data, theme), folder, theme).files;
}

}  // namespace headscope
