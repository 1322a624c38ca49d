"""Scripts that are written without spaces, as ranges for regular expressions, and the two forms of Han characters."""

CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
"""Kana, Han and Hangul."""

UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
"""Kana and Han; Korean puts spaces between words."""

_FORMS = (
    "万萬 与與 东東 两兩 严嚴 个個箇 临臨 为爲 举舉 么麼 习習 书書 了瞭 于於 产產 亿億 仅僅 "
    "从從 仓倉 们們 优優 会會 传傳 倾傾 储儲 儿兒 关關 兴興 内內 写寫 决決 况況 准準 减減 "
    "几幾 击擊 划劃 则則 刚剛 创創 删刪 别別彆 办辦 务務 动動 区區 升昇 单單 发發 变變 只祇 "
    "号號 后後 吗嗎 听聽 启啓 响響 团團 圣聖 场場 坏壞 声聲 处處 备備 复復複覆 头頭 妈媽 宁寧 "
    "实實 审審 对對 导導 将將 尽盡儘 属屬 师師 帮幫 干幹 并並併 库庫 应應 废廢 开開 异異 弃棄 "
    "张張 归歸 当當 录錄 怀懷 态態 总總 惯慣 愿願 户戶 托託 执執 护護 报報 担擔 择擇 挂掛 "
    "换換 据據 搁擱 数數 断斷 无無 旧舊 时時 显顯 暂暫 机機 杀殺 条條 来來 板闆 构構 样樣 "
    "档檔 检檢 欢歡 没沒 测測 润潤 涨漲 溃潰 滚滾 点點 烦煩 状狀 犹猶 独獨 现現 码碼 确確 "
    "祸禍 离離 种種 称稱 笔筆 简簡 类類 纠糾 约約 级級 纯純 纳納 线線 细細 终終 绍紹 经經 "
    "结結 给給 绝絕 统統 继繼 续續 维維 绿綠 缓緩 编編 缩縮 网網 罢罷 职職 脚腳 节節 范範 "
    "荐薦 虑慮 虽雖 补補 装裝 见見 规規 视視 览覽 觉覺 计計 订訂 认認 讨討 让讓 议議 记記 "
    "讲講 许許 论論 讽諷 设設 访訪 证證証 评評 识識 诉訴 译譯 试試 话話 诞誕 该該 详詳 语語 "
    "误誤 说說 请請 读讀 谁誰 调調 谓謂 谢謝 负負 责責 败敗 贴貼 赖賴 赞讚 转轉 载載 较較 "
    "辑輯 输輸 迁遷 过過 运運 还還 这這 进進 远遠 迟遲 选選 遗遺 邮郵 释釋 钟鐘 销銷 锁鎖 "
    "错錯 键鍵 闭閉 问問 间間 闻聞 队隊 阳陽 阴陰 随隨 难難 面麪 项項 顺順 须須 顾顧 领領 "
    "频頻 题題 馈饋 马馬 骄驕 验驗 骤驟 别別 里裡裏 丢丟 余餘 制製 采採 注註 志誌 表錶 "
)

TRADITIONAL = {forms[0]: forms[1:] for forms in _FORMS.split()}
"""The traditional forms of the simplified Han characters of the lists of words."""
